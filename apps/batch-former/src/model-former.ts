/**
 * Brings the waiting requests of one model to its workers. Any number of formers may do so at once: a job is taken by
 * one of them, and a lease is granted by Redis. A former that dies loses nothing: the locks of what it held run out.
 */
import { type BatchPolicy, type HeldRequest, nextBatch, takeCount } from '@darkroom/batching';
import { type Clock, systemClock } from '@darkroom/core';
import { BaseService, type Logger, Metrics, PeriodicLoop, startSpan } from '@darkroom/service';
import {
  closeJob,
  giveBackJob,
  type JobTaker,
  leaseBatch,
  type LeaseOutcome,
  openJobTaker,
  readPool,
  type StoreConnection,
  type TakenJob,
  type Wakeups,
} from '@darkroom/store';
import { createFormerMetrics, type FormerMetrics } from './former-metrics.ts';

export interface ModelFormerOptions {
  store: StoreConnection;
  model: string;
  wakeups: Wakeups;
  policy: BatchPolicy;
  /** Requests to hold beyond what workers can take now. */
  lookahead: number;
  maxAttempts: number;
  lockMs: number;
  heartbeatMs: number;
  log: Logger;
  metrics?: FormerMetrics;
  /** How long a lost wake-up can hold things up. */
  slowTickMs?: number;
  clock?: Clock;
}

type Held = HeldRequest & TakenJob;

export class ModelFormer extends BaseService {
  readonly #options: Required<ModelFormerOptions>;
  readonly #taker: JobTaker;
  readonly #dispatching: PeriodicLoop;
  readonly #renewing: PeriodicLoop;
  #held: Held[] = [];
  #stopListening: (() => void) | undefined;
  #companyTimer: NodeJS.Timeout | undefined;

  constructor({ clock = systemClock, slowTickMs = 1000, ...options }: ModelFormerOptions) {
    super();
    const { store, model, lockMs, heartbeatMs, log } = options;
    const { metrics = createFormerMetrics(new Metrics({ app: 'batch-former', log })) } = options;
    this.#options = { ...options, metrics, slowTickMs, clock };
    const onError = (error: Error): void => log.warn({ reason: error.message, model }, 'no connection to Redis');
    this.#taker = openJobTaker(store, model, { lockMs, stalledCheckMs: lockMs, onError });
    const loop = { log, errorIntervalMs: slowTickMs };
    this.#dispatching = new PeriodicLoop({
      ...loop,
      name: `dispatch ${model}`,
      intervalMs: slowTickMs,
      runOnce: () => this.runOnce(),
    });
    this.#renewing = new PeriodicLoop({
      ...loop,
      name: `renew ${model}`,
      intervalMs: heartbeatMs,
      runOnce: () => this.renewOnce(),
    });
  }

  /** Requests taken out of the queue and not leased yet. */
  get held(): number {
    return this.#held.length;
  }

  /** Takes what workers have room for and leases all that can go. Two round trips, and one for each batch. */
  async runOnce(): Promise<void> {
    const { model, metrics } = this.#options;
    await this.#dispatch().finally(() => metrics.held.set({ model }, this.#held.length));
  }

  async #dispatch(): Promise<void> {
    const { store, model, policy, lookahead, clock } = this.#options;
    const pool = await readPool(store, model);
    // What is held would stand in the way of those who come later and are more urgent.
    if (pool.isPaused) return this.#giveBackHeld();
    const count = takeCount(this.#held, pool, pool, { lookahead, isBatching: policy.isBatching });
    if (count > 0) await this.#take(count);
    for (;;) {
      const decision = nextBatch(this.#held, pool, policy, clock.now());
      if (decision.kind === 'wait') this.#decideAgainAt(decision.untilMs);
      if (decision.kind !== 'lease') return;
      const outcomes = await this.#lease(decision.batch, decision.mode, decision.maxRows);
      const leasedRows = decision.batch.reduce(
        (sum, { slots }, index) => sum + (outcomes[index] === 'leased' ? slots : 0),
        0,
      );
      // Nothing moved: another former was faster, and its release will wake us.
      if (outcomes.every((outcome) => outcome === 'waiting')) return;
      // What turned out to have ended has left its place to others, whose wake-up may be long past.
      if (outcomes.some((outcome) => isGone(outcome))) void this.#dispatching.trigger();
      if (leasedRows > 0) pool.idle = Math.max(0, pool.idle - 1);
      pool.freeRows -= leasedRows;
    }
  }

  /** Renews the locks of what is held, and forgets what was lost. */
  async renewOnce(): Promise<void> {
    const lost = new Set(await this.#taker.renew(this.#held));
    if (lost.size > 0) this.#held = this.#held.filter(({ id }) => !lost.has(id));
    const { model, metrics } = this.#options;
    metrics.locksLost.inc({ model }, lost.size);
    metrics.held.set({ model }, this.#held.length);
  }

  protected override async onStart(): Promise<void> {
    const { wakeups, model } = this.#options;
    this.#stopListening = await wakeups.listen(model, () => void this.#dispatching.trigger());
    await this.#dispatching.start();
    await this.#renewing.start();
  }

  protected override async onStop(): Promise<void> {
    this.#stopListening?.();
    clearTimeout(this.#companyTimer);
    await this.#dispatching.stop();
    await this.#renewing.stop();
    await this.#giveBackHeld();
    await this.#taker.close();
  }

  async #giveBackHeld(): Promise<void> {
    const { store, model } = this.#options;
    await Promise.all(this.#held.splice(0).map((delivery) => giveBackJob(store, model, delivery)));
  }

  async #take(count: number): Promise<void> {
    const taken = await this.#taker.take(count);
    const takenAtMs = this.#options.clock.now();
    this.#held.push(...taken.map((job) => ({ ...job, takenAtMs, isAlone: false })));
  }

  async #lease(batch: readonly Held[], mode: 'shared' | 'exclusive', maxRows: number): Promise<LeaseOutcome[]> {
    const { store, model, maxAttempts, log, metrics, clock } = this.#options;
    const options = { mode, maxRows, maxAttempts, nowMs: clock.now() };
    const { workerId, outcomes } = await leaseBatch(store, model, batch, options);
    await Promise.all(batch.map((request, index) => this.#settle(request, outcomes[index] ?? 'waiting')));
    const leased = batch.filter((_request, index) => outcomes[index] === 'leased');
    const attributes = { 'darkroom.worker': workerId ?? '', 'darkroom.together': leased.length };
    for (const { trace, takenAtMs } of leased)
      startSpan('dispatch', { kind: 'consumer', parent: trace, startedAtMs: takenAtMs, attributes }).end();
    for (const outcome of outcomes) metrics.leases.inc({ model, outcome });
    if (leased.length > 0) metrics.together.observe({ model }, leased.length);
    for (const { id } of leased) log.info({ request_id: id, worker: workerId, together: leased.length }, 'leased');
    return outcomes;
  }

  /** What becomes of a held request after a lease was asked for it. */
  async #settle(request: Held, outcome: LeaseOutcome): Promise<void> {
    if (outcome === 'waiting') return;
    if (outcome === 'alone') {
      request.isAlone = true;
      return;
    }
    this.#held = this.#held.filter((other) => other !== request);
    const { store, model, log } = this.#options;
    if (outcome === 'ended') await closeJob(store, model, request);
    if (outcome === 'exhausted') {
      log.error({ request_id: request.id }, 'failed: it lost its worker in every attempt');
      await closeJob(store, model, request, 'It lost its worker in every attempt.');
    }
  }

  #decideAgainAt(untilMs: number): void {
    clearTimeout(this.#companyTimer);
    const waitMs = Math.max(0, untilMs - this.#options.clock.now());
    this.#companyTimer = setTimeout(() => void this.#dispatching.trigger(), waitMs);
  }
}

function isGone(outcome: LeaseOutcome): boolean {
  return outcome === 'ended' || outcome === 'exhausted' || outcome === 'lost';
}
