/**
 * Leases queued requests to the workers of each shard: reads a snapshot, plans (libs/batching), and commits by one
 * script that checks the plan's preconditions. It is stateless: any number of formers may run at once, and one that
 * dies loses nothing.
 */
import { type BatchPolicy, type Plan, planLeases } from '@darkroom/batching';
import { type Dispatchable, modelOfShard } from '@darkroom/core';
import { BaseService, type Logger, LoopsByName, Metrics, startSpan } from '@darkroom/service';
import {
  dispatchRequests,
  type DispatchOutcome,
  type EventHub,
  listShards,
  readDispatchable,
  type StoreConnection,
} from '@darkroom/store';

export interface BatchFormerOptions {
  store: StoreConnection;
  wakeups: Pick<EventHub, 'listen'>;
  policy: BatchPolicy;
  log: Logger;
  metrics?: ReturnType<typeof createFormerMetrics>;
  /** Polling interval, which bounds the delay after a lost wake-up, ms. */
  slowTickMs?: number;
}

/** Interval at which new shards are discovered, ms. */
const discoverEveryMs = 500;

/** Max. snapshot of one tick, which keeps ticks short; the rest takes more ticks. */
const snapshotLimits = { maxWorkers: 32, maxRequests: 256 };

export class BatchFormer extends BaseService<Required<Omit<BatchFormerOptions, 'slowTickMs' | 'wakeups'>>> {
  readonly #dispatching: LoopsByName;
  readonly #batchTimers = new Map<string, NodeJS.Timeout>();

  constructor({ slowTickMs: intervalMs = 1000, wakeups, ...options }: BatchFormerOptions) {
    const { store, log, metrics = createFormerMetrics(new Metrics({ app: 'batch-former', log })) } = options;
    super({ ...options, metrics });
    this.#dispatching = new LoopsByName({
      name: 'dispatch',
      discover: () => listShards(store),
      discoverEveryMs,
      intervalMs,
      runOnce: (shard) => this.runOnce(shard),
      listen: (shard, wake) =>
        wakeups.listen(shard, (snapshot) =>
          snapshot === undefined ? wake() : void this.#leaseFirst(shard, snapshot, wake),
        ),
      log,
    });
  }

  /**
   * Leases all requests of a shard that can run. Two round trips, regardless of the number of leases; one if there is
   * nothing to do.
   */
  async runOnce(shard: string): Promise<void> {
    const { store } = this.options;
    for (;;) {
      const snapshot = await readDispatchable(store, shard, snapshotLimits);
      const outcomes = await this.#lease(shard, snapshot);
      // Requests that left the queue otherwise have left their slots free, and more may wait than the snapshot held;
      // their wake-up may be long past.
      const isCut =
        snapshot.requests.length === snapshotLimits.maxRequests || snapshot.workers.length >= snapshotLimits.maxWorkers;
      const retryStatuses = new Set<DispatchOutcome['status']>(
        isCut ? ['moved', 'expired', 'failed', 'leased'] : ['moved', 'expired', 'failed'],
      );
      if (!outcomes.some(({ status }) => retryStatuses.has(status))) return;
    }
  }

  /** Leases a request to an idle worker in one round trip. Triggers a tick if another former was faster. */
  async #leaseFirst(shard: string, snapshot: Dispatchable, wake: () => void): Promise<void> {
    const outcomes = await this.#lease(shard, snapshot).catch(() => []);
    if (outcomes.length === 0 || outcomes.some(({ status }) => status !== 'leased')) wake();
  }

  /** Plans and commits leases for a snapshot. @returns the outcomes; none if there was nothing to do. */
  async #lease(shard: string, snapshot: Dispatchable): Promise<DispatchOutcome[]> {
    const { store, policy } = this.options;
    const plan = planLeases(snapshot, policy);
    const { leases, reserveWorkerId, retryInMs } = plan;
    if (retryInMs !== undefined) {
      clearTimeout(this.#batchTimers.get(shard));
      this.#batchTimers.set(
        shard,
        setTimeout(() => void this.#dispatching.trigger(shard), retryInMs),
      );
    }
    if (leases.length === 0 && reserveWorkerId === undefined) return [];
    const outcomes = await dispatchRequests(store, shard, leases, { reserveWorkerId });
    this.#report(shard, plan, outcomes, snapshot);
    return outcomes;
  }

  protected override async onStart(): Promise<void> {
    await this.#dispatching.start();
  }

  protected override async onStop(): Promise<void> {
    await this.#dispatching.stop();
    for (const timer of this.#batchTimers.values()) clearTimeout(timer);
  }

  #report(shard: string, { leases }: Plan, outcomes: readonly DispatchOutcome[], snapshot: Dispatchable): void {
    const { log, metrics } = this.options;
    const model = modelOfShard(shard);
    const waitedMs = new Map(snapshot.requests.map(({ id, waitingSinceMs }) => [id, snapshot.nowMs - waitingSinceMs]));
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
}

/** Metrics of the batch-former, over all models. */
export function createFormerMetrics(metrics: Metrics) {
  return {
    leases: metrics.counter({
      name: 'darkroom_leases_total',
      help: 'Outcomes of planned leases: leased, waiting (no free slots left), moved (another former was faster), expired, failed (its owner stores too many bytes).',
      labels: ['model', 'outcome'],
    }),
    together: metrics.histogram({
      name: 'darkroom_lease_requests',
      help: 'Requests per batch of leases to one worker.',
      labels: ['model'],
      buckets: [1, 2, 3, 4, 6, 8, 12, 16, 32],
    }),
  };
}
