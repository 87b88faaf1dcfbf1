/**
 * Brings the waiting requests of each shard of a model to its workers: looks, decides (libs/batching), and commits by one script that
 * checks what was assumed. It holds nothing, so any number of formers may do so at once and one that dies loses nothing.
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
  /** How long a lost wake-up can hold things up. */
  slowTickMs?: number;
}

/** How soon a model that is new to the system is served. */
const discoverEveryMs = 500;

/** What one look brings at most, so that a turn is short however many there are; more takes more turns. */
const view = { maxWorkers: 32, maxRequests: 256 };

export class BatchFormer extends BaseService<Required<Omit<BatchFormerOptions, 'slowTickMs' | 'wakeups'>>> {
  readonly #dispatching: LoopsByName;
  readonly #companyTimers = new Map<string, NodeJS.Timeout>();

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
        wakeups.listen(shard, (seen) => (seen === undefined ? wake() : void this.#leaseFirst(shard, seen, wake))),
      log,
    });
  }

  /** Leases all of a shard of a model that can go. Two round trips, whatever the number of leases; one when there is nothing to do. */
  async runOnce(shard: string): Promise<void> {
    const { store, policy } = this.options;
    for (;;) {
      const seen = await readDispatchable(store, shard, { ...view, beyondRoom: policy.lookahead });
      const outcomes = await this.#lease(shard, seen);
      // What turned out to be gone has left its place to others, and more may wait than was seen; their wake-up may be long past.
      const isCut = seen.requests.length === view.maxRequests || seen.workers.length >= view.maxWorkers;
      const news = new Set<DispatchOutcome['status']>(isCut ? ['moved', 'expired', 'leased'] : ['moved', 'expired']);
      if (!outcomes.some(({ status }) => news.has(status))) return;
    }
  }

  /** One round trip for a request that came to an idle worker. A turn of the loop, if somebody was faster. */
  async #leaseFirst(shard: string, seen: Dispatchable, wake: () => void): Promise<void> {
    const outcomes = await this.#lease(shard, seen).catch(() => []);
    if (outcomes.length === 0 || outcomes.some(({ status }) => status !== 'leased')) wake();
  }

  /** What came of the plan for what was seen, none if there was nothing to do. */
  async #lease(shard: string, seen: Dispatchable): Promise<DispatchOutcome[]> {
    const { store, policy } = this.options;
    const plan = planLeases(seen, policy);
    const { leases, reserveWorkerId, againInMs } = plan;
    if (againInMs !== undefined) {
      clearTimeout(this.#companyTimers.get(shard));
      this.#companyTimers.set(
        shard,
        setTimeout(() => void this.#dispatching.trigger(shard), againInMs),
      );
    }
    if (leases.length === 0 && reserveWorkerId === undefined) return [];
    const outcomes = await dispatchRequests(store, shard, leases, { reserveWorkerId });
    this.#report(shard, plan, outcomes, seen);
    return outcomes;
  }

  protected override async onStart(): Promise<void> {
    await this.#dispatching.start();
  }

  protected override async onStop(): Promise<void> {
    await this.#dispatching.stop();
    for (const timer of this.#companyTimers.values()) clearTimeout(timer);
  }

  #report(shard: string, { leases }: Plan, outcomes: readonly DispatchOutcome[], seen: Dispatchable): void {
    const { log, metrics } = this.options;
    const model = modelOfShard(shard);
    const waitedMs = new Map(seen.requests.map(({ id, waitingSinceMs }) => [id, seen.nowMs - waitingSinceMs]));
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

/** What formers count, over all models. */
export function createFormerMetrics(metrics: Metrics) {
  return {
    leases: metrics.counter({
      name: 'darkroom_leases_total',
      help: 'What became of requests that were to go to a worker: leased, waiting (no room by then), moved (another former was faster), expired.',
      labels: ['model', 'outcome'],
    }),
    together: metrics.histogram({
      name: 'darkroom_lease_requests',
      help: 'Requests that were leased to a worker together.',
      labels: ['model'],
      buckets: [1, 2, 3, 4, 6, 8, 12, 16, 32],
    }),
  };
}
