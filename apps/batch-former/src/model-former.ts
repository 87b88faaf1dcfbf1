/**
 * Brings the waiting requests of one model to its workers: looks, decides (libs/batching), and commits by one script that
 * checks what was assumed. It holds nothing, so any number of formers may do so at once and one that dies loses nothing.
 */
import { type BatchPolicy, type Plan, planLeases } from '@darkroom/batching';
import { BaseService, type Logger, Metrics, PeriodicLoop, startSpan } from '@darkroom/service';
import {
  type Dispatchable,
  dispatchRequests,
  type DispatchOutcome,
  readDispatchable,
  type StoreConnection,
  type Wakeups,
} from '@darkroom/store';
import { createFormerMetrics, type FormerMetrics } from './former-metrics.ts';

export interface ModelFormerOptions {
  store: StoreConnection;
  model: string;
  wakeups: Wakeups;
  policy: BatchPolicy;
  log: Logger;
  metrics?: FormerMetrics;
  /** How long a lost wake-up can hold things up. */
  slowTickMs?: number;
}

/**
 * What one look brings at most, so that a turn is short however many there are; more takes more turns. Some requests more than
 * find room: what must run alone, and waits for that, is to hide nobody.
 */
const view = { maxWorkers: 32, maxRequests: 256, beyondRoom: 32 };

export class ModelFormer extends BaseService {
  readonly #options: Required<ModelFormerOptions>;
  readonly #dispatching: PeriodicLoop;
  #stopListening: (() => void) | undefined;
  #companyTimer: NodeJS.Timeout | undefined;

  constructor({ slowTickMs = 1000, ...options }: ModelFormerOptions) {
    super();
    const { model, log } = options;
    const { metrics = createFormerMetrics(new Metrics({ app: 'batch-former', log })) } = options;
    this.#options = { ...options, metrics, slowTickMs };
    this.#dispatching = new PeriodicLoop({
      name: `dispatch ${model}`,
      intervalMs: slowTickMs,
      errorIntervalMs: slowTickMs,
      runOnce: () => this.runOnce(),
      log,
    });
  }

  /** Leases all that can go. Two round trips, whatever the number of leases; one when there is nothing to do. */
  async runOnce(): Promise<void> {
    const { store, model, policy } = this.#options;
    for (;;) {
      const seen = await readDispatchable(store, model, { ...view, beyondRoom: view.beyondRoom + policy.lookahead });
      const plan = planLeases(seen, policy);
      if (plan.againInMs !== undefined) this.#decideAgainIn(plan.againInMs);
      if (plan.leases.length === 0 && plan.reserveWorkerId === undefined) return;
      const { reserveWorkerId } = plan;
      const outcomes = await dispatchRequests(store, model, plan.leases, { reserveWorkerId });
      this.#report(plan, outcomes, seen);
      // What turned out to be gone has left its place to others, and more may wait than was seen; their wake-up may be long past.
      const isCut = seen.requests.length === view.maxRequests || seen.workers.length >= view.maxWorkers;
      const hasMoved = (status: DispatchOutcome['status']): boolean => status === 'moved' || status === 'expired';
      if (!outcomes.some(({ status }) => hasMoved(status) || (isCut && status === 'leased'))) return;
    }
  }

  protected override async onStart(): Promise<void> {
    const { wakeups, model } = this.#options;
    this.#stopListening = await wakeups.listen(model, () => void this.#dispatching.trigger());
    await this.#dispatching.start();
  }

  protected override async onStop(): Promise<void> {
    this.#stopListening?.();
    clearTimeout(this.#companyTimer);
    await this.#dispatching.stop();
  }

  #report({ leases }: Plan, outcomes: readonly DispatchOutcome[], { nowMs, requests }: Dispatchable): void {
    const { model, log, metrics } = this.#options;
    const waitedMs = new Map(requests.map(({ id, waitingSinceMs }) => [id, nowMs - waitingSinceMs]));
    let position = 0;
    for (const { workerId, requestIds } of leases) {
      const own = outcomes.slice(position, (position += requestIds.length));
      for (const { status } of own) metrics.leases.inc({ model, outcome: status });
      const leased = own.filter((outcome) => outcome.status === 'leased');
      if (leased.length > 0) metrics.together.observe({ model }, leased.length);
      const attributes = { 'darkroom.worker': workerId, 'darkroom.together': leased.length };
      for (const { delivery, trace } of leased) {
        const startedAtMs = Date.now() - (waitedMs.get(delivery.id) ?? 0);
        startSpan('dispatch', { kind: 'consumer', parent: trace, startedAtMs, attributes }).end();
        log.info({ request_id: delivery.id, worker: workerId, together: leased.length }, 'leased');
      }
    }
  }

  #decideAgainIn(waitMs: number): void {
    clearTimeout(this.#companyTimer);
    this.#companyTimer = setTimeout(() => void this.#dispatching.trigger(), waitMs);
  }
}
