/**
 * Puts right what dying processes leave behind: workers without a heartbeat and what they had, requests past their
 * deadline, keys of what is no more. Every sweep is safe to run in any number of janitors at once.
 */
import { planMoves } from '@darkroom/batching';
import type { WorkerMove } from '@darkroom/core';
import { BaseService, type Logger, LoopsByName, Metrics, PeriodicLoop, startSpan } from '@darkroom/service';
import {
  BytesSweeper,
  expireRequests,
  groupShards,
  LeakSweeper,
  listShards,
  mayMoveBusy,
  readShardLoads,
  sendWorker,
  spreadModel,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import { createKeySizeReport } from './report-queues.ts';

export interface JanitorOptions {
  store: StoreConnection;
  log: Logger;
  sweepIntervalMs: number;
  /** In which all keys are looked at once and no more often; a store of more keys than `leakPages` pages takes longer. */
  leakSweepIntervalMs: number;
  /** A worker that is silent for so long, while sweeps take place, is dead. */
  workerTtlMs: number;
  /** Shards that each model is spread over. */
  modelShards?: number;
  metrics?: Metrics;
}

/** Looks at the keys are spread over the interval, so that none takes long. */
const leakPages = 60;
/** A worker with work is sent to another shard once in so many sweeps at most: it ends what it has before, and takes nothing meanwhile. */
const sweepsPerBusyMove = 10;

export class Janitor extends BaseService<JanitorOptions> {
  readonly #sweeping: LoopsByName;
  readonly #dealing: LoopsByName;
  /** Of each model, as it was last seen. */
  #shards: ReadonlyMap<string, readonly string[]> = new Map();
  readonly #leakSweeping: PeriodicLoop;
  readonly #leaks: LeakSweeper;
  readonly #bytes: BytesSweeper;
  readonly #reportKeySizes: ReturnType<typeof createKeySizeReport>;
  /** When the last pass over all keys began, and whether it is over. */
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
    // Beside the sweeps: a shard whose server does not answer keeps no other one waiting.
    this.#dealing = new LoopsByName({
      name: 'deal',
      discover: () => Promise.resolve(this.#spreadModels()),
      discoverEveryMs: sweepIntervalMs,
      intervalMs: sweepIntervalMs,
      runOnce: (model) => this.dealOnce(model, this.#shards.get(model)),
      log,
    });
    this.#leakSweeping = new PeriodicLoop({
      name: 'sweep leaks',
      intervalMs: Math.ceil(leakSweepIntervalMs / leakPages),
      runOnce: () => this.sweepLeaksIfDue(performance.now()),
      log,
    });
  }

  /** Buries the dead workers of a shard of a model, requeues what they had, ends what is overdue. */
  async sweepOnce(shard: string) {
    const { store, log, sweepIntervalMs, workerTtlMs } = this.options;
    const result = { buried: [] as string[], requeued: [] as string[], expired: [] as string[] };
    const missedSweeps = Math.max(1, Math.ceil(workerTtlMs / sweepIntervalMs));
    // A little less than ours, so that each of our own counts.
    const options = { intervalMs: 0.9 * sweepIntervalMs, missedSweeps };
    for (const { workerId, requests } of await sweepWorkers(store, shard, options)) {
      log.warn({ model: shard, worker: workerId, requests: requests.length }, 'buried a dead worker');
      result.buried.push(workerId);
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
    return result;
  }

  /** Has a model spread over as many shards as it should be, and its workers go where they are needed. The moves. Two round trips. */
  async dealOnce(model: string, known: readonly string[] = [model]): Promise<WorkerMove[]> {
    const { store, log, modelShards: count = 1, sweepIntervalMs } = this.options;
    await spreadModel(store, model, { count, known });
    if (known.length === 1) return [];
    const loads = await readShardLoads(store, known);
    const moves: WorkerMove[] = [];
    for (const move of planMoves(loads, { heldUpMs: sweepIntervalMs })) {
      if (move.isPatient && !(await mayMoveBusy(store, model, sweepsPerBusyMove * sweepIntervalMs))) continue;
      await sendWorker(store, move);
      log.info(move, 'sent a worker to another shard');
      moves.push(move);
    }
    return moves;
  }

  /** Goes on with a pass over all keys, or begins the next one. A small store takes one page, and is then left alone for the rest of the interval. */
  async sweepLeaksIfDue(nowMs: number): Promise<'swept' | 'not due'> {
    const isDue = !this.#pass.isOver || nowMs >= this.#pass.beganAtMs + this.options.leakSweepIntervalMs;
    if (isDue && this.#pass.isOver) this.#pass.beganAtMs = nowMs;
    if (isDue) await this.sweepLeaksOnce();
    await this.#bytes.sweepPage();
    return isDue ? 'swept' : 'not due';
  }

  /** Looks at one page of the store's keys: gives keys their TTL back, and removes what is of no use any more. */
  async sweepLeaksOnce(): Promise<void> {
    const { repaired, deleted, sizes } = await this.#leaks.sweepPage();
    this.#pass.isOver = sizes !== undefined;
    this.#reportKeySizes(sizes ?? []);
    if (repaired.length + deleted.length > 0) this.options.log.warn({ repaired, deleted }, 'swept leaks');
  }

  protected override async onStart(): Promise<void> {
    await this.#sweeping.start();
    await this.#dealing.start();
    await this.#leakSweeping.start();
  }

  protected override async onStop(): Promise<void> {
    await Promise.all([this.#sweeping, this.#dealing, this.#leakSweeping].map((loop) => loop.stop()));
  }

  async #discover(): Promise<string[]> {
    const shards = await listShards(this.options.store);
    this.#shards = groupShards(shards);
    return shards;
  }

  /** Those that have, or should have, more than one shard. */
  #spreadModels(): string[] {
    const { modelShards = 1 } = this.options;
    return [...this.#shards].filter(([, shards]) => modelShards > 1 || shards.length > 1).map(([model]) => model);
  }
}
