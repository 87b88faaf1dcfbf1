/**
 * Puts right what dying processes leave behind: workers without a heartbeat, jobs without a lock, requests past their
 * deadline, keys without a TTL. Every sweep is safe to run in any number of janitors at once.
 */
import { type Clock, systemClock } from '@darkroom/core';
import { BaseService, type Logger, LoopsByName, Metrics, PeriodicLoop, startSpan } from '@darkroom/service';
import {
  buryWorkers,
  expireRequests,
  type JobTaker,
  listModelIds,
  listRecovered,
  openJobTaker,
  readTrace,
  requeueStalled,
  retryMaxMs,
  type StoreConnection,
  sweepLeaks,
} from '@darkroom/store';
import { createKeySizeReport, type ReportKeySizes } from './report-key-sizes.ts';

/** How late a sweep may be while all is well. */
const lateMs = 500;

export interface JanitorOptions {
  store: StoreConnection;
  log: Logger;
  sweepIntervalMs: number;
  leakSweepIntervalMs: number;
  /** The lock of a job that stalls runs out after this. */
  lockMs: number;
  metrics?: Metrics;
  clock?: Clock;
}

/** What one sweep has done. */
export interface SweepResult {
  buried: string[];
  requeued: string[];
  expired: string[];
}

export class Janitor extends BaseService {
  readonly #options: Required<JanitorOptions>;
  readonly #takers = new Map<string, JobTaker>();
  readonly #sweeping: LoopsByName;
  readonly #leakSweeping: PeriodicLoop;
  readonly #reportKeySizes: ReportKeySizes;

  constructor({ clock = systemClock, ...options }: JanitorOptions) {
    super();
    const { metrics = new Metrics({ app: 'janitor', log: options.log }) } = options;
    this.#options = { ...options, metrics, clock };
    this.#reportKeySizes = createKeySizeReport(metrics);
    const { log, sweepIntervalMs, leakSweepIntervalMs } = options;
    this.#sweeping = new LoopsByName({
      name: 'sweep',
      discover: () => listModelIds(options.store),
      discoverEveryMs: sweepIntervalMs,
      intervalMs: sweepIntervalMs,
      runOnce: (model) => this.sweepOnce(model),
      log,
    });
    this.#leakSweeping = new PeriodicLoop({
      name: 'sweep leaks',
      intervalMs: leakSweepIntervalMs,
      runOnce: () => this.sweepLeaksOnce(),
      log,
    });
  }

  /** Buries a model's dead workers, requeues what stalled, ends what is overdue. */
  async sweepOnce(model: string): Promise<SweepResult> {
    const result: SweepResult = { buried: [], requeued: [], expired: [] };
    // In this order: burying drops the locks of a dead worker's jobs, which the stalled check then finds missing.
    // While silence is forgiven, that of locks is too.
    if (await this.#bury(model, result)) await this.#recoverStalled(model, result);
    await this.#expire(model, result);
    return result;
  }

  /** Gives keys their TTL back, and removes what dead workers left. */
  async sweepLeaksOnce(): Promise<void> {
    const { store, log } = this.#options;
    for (const model of await listModelIds(store)) {
      const { repaired, deleted, orphans, sizes } = await sweepLeaks(store, model);
      this.#reportKeySizes(model, sizes);
      if (repaired.length + deleted.length + orphans.length > 0)
        log.warn({ model, repaired, deleted, orphans }, 'swept leaks');
    }
  }

  protected override async onStart(): Promise<void> {
    await this.#sweeping.start();
    await this.#leakSweeping.start();
  }

  protected override async onStop(): Promise<void> {
    await Promise.all([this.#sweeping.stop(), this.#leakSweeping.stop()]);
    await Promise.all([...this.#takers.values()].map((taker) => taker.close()));
    this.#takers.clear();
  }

  /** Whether silence counts: not when Redis was away, for then nobody could be heard. */
  async #bury(model: string, result: SweepResult): Promise<boolean> {
    const { store, log, sweepIntervalMs, lockMs } = this.#options;
    const options = { pauseMs: 2 * (sweepIntervalMs + lateMs), forgiveMs: lockMs + retryMaxMs };
    const outcome = await buryWorkers(store, model, options);
    if (outcome.status === 'forgiving') return false;
    for (const { workerId, requests } of outcome.workers) {
      log.warn({ model, worker: workerId, requests }, 'buried a dead worker');
      result.buried.push(workerId);
    }
    return true;
  }

  async #recoverStalled(model: string, result: SweepResult): Promise<void> {
    const { store, log, clock } = this.#options;
    const stalled = new Set(await this.#takerOf(model).recoverStalled());
    for (const id of await listRecovered(store, model)) {
      const outcome = await requeueStalled(store, model, id, clock.now());
      // Chosen by a former, which may have taken it by now.
      if (!stalled.has(id) && (outcome === 'ended' || outcome === 'held')) continue;
      log.warn({ request_id: id, outcome }, 'recovered a stalled request');
      startSpan('recover', {
        parent: await readTrace(store, model, id),
        attributes: { 'darkroom.outcome': outcome },
      }).end();
      result.requeued.push(id);
    }
  }

  async #expire(model: string, result: SweepResult): Promise<void> {
    const { store, log, clock } = this.#options;
    for (const id of await expireRequests(store, model, clock.now())) {
      log.info({ request_id: id }, 'expired');
      result.expired.push(id);
    }
  }

  #takerOf(model: string): JobTaker {
    const { store, log, lockMs, sweepIntervalMs } = this.#options;
    let taker = this.#takers.get(model);
    if (taker === undefined) {
      const onError = (error: Error): void => log.warn({ reason: error.message, model }, 'no connection to Redis');
      // BullMQ lets one check through per interval; half of ours, so that each of our sweeps is one.
      taker = openJobTaker(store, model, { lockMs, stalledCheckMs: Math.ceil(sweepIntervalMs / 2), onError });
      this.#takers.set(model, taker);
    }
    return taker;
  }
}
