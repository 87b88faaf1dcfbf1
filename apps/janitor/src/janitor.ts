/**
 * Cleans up after dying processes: reaps workers without a heartbeat and requeues their requests, expires requests past
 * their deadline, deletes leaked keys. Every sweep is safe to run in any number of janitors at once.
 */
import { planMoves } from '@darkroom/batching';
import { modelOfShard, type WorkerMove } from '@darkroom/core';
import { BaseService, type Logger, LoopsByName, Metrics, PeriodicLoop, startSpan } from '@darkroom/service';
import {
  BytesSweeper,
  expireRequests,
  forgetModel,
  groupShards,
  LeakSweeper,
  listShards,
  claimBusyMove,
  readShardLoads,
  sendMove,
  setShardCount,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import { createKeySizeReport } from './report-queues.ts';

export interface JanitorOptions {
  store: StoreConnection;
  log: Logger;
  sweepIntervalMs: number;
  /**
   * Min. time between two passes over all keys, ms; a pass takes longer if there are more keys than `leakPages` pages.
   */
  leakSweepIntervalMs: number;
  /** A worker without a heartbeat for this long, counting only time with sweeps, is dead, ms. */
  workerTtlMs: number;
  /** Target number of shards per model. */
  modelShards?: number;
  /** A model without workers (counting sweeps) for this long and without queued requests is deleted, ms. */
  forgetAfterMs?: number;
  metrics?: Metrics;
}

const defaultForgetAfterMs = 24 * 3_600_000;

/** Pages per interval that a pass over all keys is spread over, so that no page takes long. */
const leakPages = 60;
/** Min. time between two pages, of keys and of the byte store, ms. */
const minLeakPageMs = 1000;
/**
 * Min. number of sweeps between two moves of a busy worker, which takes no new work until it has ended its requests.
 */
const sweepsPerBusyMove = 10;

export class Janitor extends BaseService<JanitorOptions> {
  readonly #sweeping: LoopsByName;
  readonly #rebalancing: LoopsByName;
  /** Last known shards of each model. */
  #shards: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #leakSweeping: PeriodicLoop;
  readonly #leaks: LeakSweeper;
  readonly #bytes: BytesSweeper;
  readonly #reportKeySizes: ReturnType<typeof createKeySizeReport>;
  /** Start of the last pass over all keys, and whether it is complete. */
  #pass = { beganAtMs: -Infinity, isOver: true };

  constructor(options: JanitorOptions) {
    super(options);
    const { store, log, sweepIntervalMs, leakSweepIntervalMs, metrics } = options;
    this.#leaks = new LeakSweeper(store);
    this.#bytes = new BytesSweeper(store);
    this.#reportKeySizes = createKeySizeReport(metrics ?? new Metrics({ app: 'janitor', log }));
    this.#sweeping = new LoopsByName({
      name: 'sweep',
      discover: () => this.#discover(),
      discoverEveryMs: sweepIntervalMs,
      intervalMs: sweepIntervalMs,
      runOnce: (shard) => this.sweepOnce(shard),
      log,
    });
    // Separate loop: a shard whose server does not answer must not delay the others.
    this.#rebalancing = new LoopsByName({
      name: 'rebalance',
      discover: () => Promise.resolve(this.#spreadModels()),
      discoverEveryMs: sweepIntervalMs,
      intervalMs: sweepIntervalMs,
      runOnce: (model) => this.rebalanceOnce(model, this.#shards.get(model)),
      log,
    });
    this.#leakSweeping = new PeriodicLoop({
      name: 'sweep leaks',
      intervalMs: Math.max(minLeakPageMs, Math.ceil(leakSweepIntervalMs / leakPages)),
      runOnce: () => this.sweepLeaksIfDue(performance.now()),
      log,
    });
  }

  /** Reaps the dead workers of a shard, requeues their requests and expires overdue ones. */
  async sweepOnce(shard: string) {
    const { store, log, sweepIntervalMs, workerTtlMs } = this.options;
    const result = { reaped: [] as string[], requeued: [] as string[], expired: [] as string[] };
    const missedSweeps = Math.max(1, Math.ceil(workerTtlMs / sweepIntervalMs));
    // A little less than the interval, so that each of our own sweeps counts.
    const options = { intervalMs: 0.9 * sweepIntervalMs, missedSweeps };
    const { reaped, unservedMs } = await sweepWorkers(store, shard, options);
    for (const { workerId, requests } of reaped) {
      log.warn({ model: shard, worker: workerId, requests: requests.length }, 'reaped a dead worker');
      result.reaped.push(workerId);
      for (const { id, outcome, trace } of requests) {
        log.warn({ request_id: id, outcome }, 'recovered a request of a dead worker');
        startSpan('recover', { parent: trace, attributes: { 'darkroom.outcome': outcome } }).end();
        result.requeued.push(id);
      }
    }
    for (const id of await expireRequests(store, shard)) {
      log.info({ request_id: id }, 'expired');
      result.expired.push(id);
    }
    await this.#forgetUnserved(shard, unservedMs);
    return result;
  }

  /** Deletes a model that is unserved in all its shards; runs with the first shard. */
  async #forgetUnserved(shard: string, shardUnservedMs: number): Promise<void> {
    const { store, log, forgetAfterMs: unservedMs = defaultForgetAfterMs } = this.options;
    if (shardUnservedMs < unservedMs || shard !== modelOfShard(shard)) return;
    const { status } = await forgetModel(store, shard, { unservedMs });
    if (status === 'forgotten') log.info({ model: shard }, 'forgot a model that no worker has served for a day');
  }

  /**
   * Spreads a model over its target number of shards and rebalances its workers. Two round trips.
   *
   * @returns the moves.
   */
  async rebalanceOnce(model: string, known: readonly string[] = [model]): Promise<WorkerMove[]> {
    const { store, log, modelShards: count = 1, sweepIntervalMs } = this.options;
    await setShardCount(store, model, { count, known });
    if (known.length === 1) return [];
    const loads = await readShardLoads(store, known);
    const moves: WorkerMove[] = [];
    for (const move of planMoves(loads, { heldUpMs: sweepIntervalMs })) {
      if (move.isPatient && !(await claimBusyMove(store, model, sweepsPerBusyMove * sweepIntervalMs))) continue;
      await sendMove(store, move);
      log.info(move, 'moved a worker to another shard');
      moves.push(move);
    }
    return moves;
  }

  /**
   * Continues the pass over all keys, or starts the next one. A small store takes one page and is then idle until the
   * interval has passed.
   */
  async sweepLeaksIfDue(nowMs: number): Promise<'swept' | 'not due'> {
    const isDue = !this.#pass.isOver || nowMs >= this.#pass.beganAtMs + this.options.leakSweepIntervalMs;
    if (isDue && this.#pass.isOver) this.#pass.beganAtMs = nowMs;
    if (isDue) await this.sweepLeaksOnce();
    await this.#bytes.sweepPage();
    return isDue ? 'swept' : 'not due';
  }

  /** Sweeps one page of keys: restores missing TTLs and deletes leaked keys. */
  async sweepLeaksOnce(): Promise<void> {
    const { repaired, deleted, sizes } = await this.#leaks.sweepPage();
    this.#pass.isOver = sizes !== undefined;
    this.#reportKeySizes(sizes ?? []);
    if (repaired.length + deleted.length > 0) this.options.log.warn({ repaired, deleted }, 'repaired leaked keys');
  }

  protected override async onStart(): Promise<void> {
    await this.#sweeping.start();
    await this.#rebalancing.start();
    await this.#leakSweeping.start();
  }

  protected override async onStop(): Promise<void> {
    await Promise.all([this.#sweeping, this.#rebalancing, this.#leakSweeping].map((loop) => loop.stop()));
  }

  async #discover(): Promise<string[]> {
    const shards = await listShards(this.options.store);
    this.#shards = groupShards(shards);
    return shards;
  }

  /** Returns the models that have or must have more than one shard. */
  #spreadModels(): string[] {
    const { modelShards = 1 } = this.options;
    return [...this.#shards].filter(([, shards]) => modelShards > 1 || shards.length > 1).map(([model]) => model);
  }
}
