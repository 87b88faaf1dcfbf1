/**
 * One engine's connection to the system: registers, keeps its heartbeat and its locks, feeds leased requests to the
 * executor and writes back what comes out. Inference runs in another process, so that none of this ever waits for it.
 */
import { randomUUID } from 'node:crypto';
import type { ModelCard } from '@darkroom/core';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import { BaseService, type Logger, PeriodicLoop } from '@darkroom/service';
import {
  drainWorker,
  giveBackRequest,
  heartbeatWorker,
  type InboxMessage,
  type JobTaker,
  type LeasedRequest,
  openInbox,
  openJobTaker,
  publishModel,
  readCheckpoints,
  readFinishedOutputs,
  registerWorker,
  type StoreConnection,
  unregisterWorker,
  type WorkerIdentity,
  type WorkerInbox,
} from '@darkroom/store';
import { ActiveRequest, type OutputEncoder } from './active-request.ts';
import { decodeCheckpoint } from './checkpoint-bytes.ts';

export interface WorkerOptions {
  store: StoreConnection;
  card: ModelCard;
  workerId: string;
  /** Rows that share a step. */
  capacity: number;
  chunkBytes: number;
  lockMs: number;
  heartbeatMs: number;
  /** Without a heartbeat for so long the worker counts as dead. */
  ttlMs: number;
  info: Readonly<Record<string, string | number>>;
  log: Logger;
  encoder: OutputEncoder;
  createExecutor: (listener: (events: readonly ExecutorEvent[]) => void) => Executor;
}

/** How long one look into the inbox waits; a closing connection ends it sooner. */
const inboxWaitS = 1;

export class Worker extends BaseService {
  readonly #options: WorkerOptions;
  readonly #identity: WorkerIdentity;
  readonly #executor: Executor;
  readonly #taker: JobTaker;
  readonly #active = new Map<string, ActiveRequest>();
  readonly #receiving: PeriodicLoop;
  readonly #beating: PeriodicLoop;
  readonly #inbox: WorkerInbox;
  #markDrained: () => void = () => {};
  readonly #drained = new Promise<void>((resolve) => (this.#markDrained = resolve));
  #state: 'loading' | 'ready' | 'stopping' = 'loading';

  constructor(options: WorkerOptions) {
    super();
    this.#options = options;
    const { store, card, workerId, lockMs, heartbeatMs, log } = options;
    this.#identity = { model: card.id, workerId, incarnation: randomUUID() };
    this.#executor = options.createExecutor((events) => this.#onEvents(events));
    const onError = (error: Error): void => log.error({ err: error }, 'queue connection');
    this.#taker = openJobTaker(store, card.id, { lockMs, stalledCheckMs: lockMs, onError });
    this.#inbox = openInbox(store, this.#identity);
    this.#receiving = new PeriodicLoop({ name: 'inbox', intervalMs: 0, runOnce: () => this.#receiveOnce(), log });
    this.#beating = new PeriodicLoop({
      name: 'heartbeat',
      intervalMs: heartbeatMs,
      runOnce: () => this.beatOnce(),
      log,
    });
  }

  /** Ids of the requests it has. */
  get requestIds(): string[] {
    return [...this.#active.keys()];
  }

  /** Renews registration and locks; drops what is not ours any more. Two round trips. */
  async beatOnce(): Promise<void> {
    const { store, ttlMs, log } = this.#options;
    const requests = [...this.#active.values()];
    const [life, lost] = await Promise.all([
      heartbeatWorker(store, this.#identity, ttlMs),
      this.#taker.renew(requests.map(({ delivery }) => delivery)),
    ]);
    for (const id of lost) this.#drop(id, 'lock lost');
    if (life === 'buried') {
      log.warn('taken for dead while alive; registering again');
      await this.#register();
    }
  }

  protected override async onStart(): Promise<void> {
    const { store, card, log } = this.#options;
    this.#state = 'loading';
    await publishModel(store, card);
    await this.#register();
    await this.#beating.start();
    await this.#executor.start();
    this.#state = 'ready';
    await this.#register();
    await this.#receiving.start();
    log.info({ model: card.id, worker: this.#identity.workerId, capacity: this.#options.capacity }, 'serving');
  }

  /** No new lease, every row checkpointed and given back, then gone. */
  protected override async onStop(): Promise<void> {
    const { store, card, log } = this.#options;
    this.#state = 'stopping';
    // The inbox ends with the drain's own message, so that no lease before it is overlooked.
    if (await drainWorker(store, this.#identity)) await this.#drained;
    await this.#receiving.stop();
    await this.#executor.shutdown({ shouldCheckpoint: true });
    await this.#beating.stop();
    await Promise.all(
      [...this.#active.values()].map(async (request) => {
        await request.settled();
        const outcome = await giveBackRequest(store, card.id, this.#identity.workerId, request.delivery, 'stops');
        log.info({ request_id: request.envelope.id, outcome }, 'given back');
      }),
    );
    this.#active.clear();
    this.#inbox.close();
    await unregisterWorker(store, this.#identity);
    await this.#taker.close();
  }

  async #register(): Promise<void> {
    const { store, capacity, ttlMs, info } = this.#options;
    const state = this.#state === 'ready' ? 'ready' : 'loading';
    await registerWorker(store, this.#identity, { state, capacity, ttlMs, info });
  }

  async #receiveOnce(): Promise<void> {
    const message = await this.#inbox.next(inboxWaitS);
    if (message !== undefined) await this.#receive(message);
  }

  async #receive(message: InboxMessage): Promise<void> {
    switch (message.type) {
      case 'cancel':
        return this.#drop(message.id, 'canceled');
      case 'drained':
        return this.#markDrained();
      case 'run':
        await Promise.all(message.requests.map((leased) => this.#accept(leased)));
    }
  }

  async #accept(leased: LeasedRequest): Promise<void> {
    const { store, card, workerId, encoder, chunkBytes, log } = this.#options;
    const { id, rows, input } = leased.envelope;
    const [checkpoints, finished] = leased.isResumed
      ? await Promise.all([readCheckpoints(store, card.id, id, rows), readFinishedOutputs(store, card.id, id)])
      : [new Map<number, Buffer>(), new Set<number>()];
    const request = new ActiveRequest({
      store,
      workerId,
      leased,
      encoder,
      chunkBytes,
      finishedRows: finished.size,
      onRefused: (outcome) => this.#drop(id, outcome),
      onError: (error) => log.error({ request_id: id, err: error }, 'could not write'),
    });
    this.#active.set(id, request);
    log.info({ request_id: id, attempt: leased.attempt, rows, resumed: checkpoints.size }, 'started');
    const indexes = Array.from({ length: rows }, (_value, index) => index).filter((index) => !finished.has(index));
    if (indexes.length === 0) await this.#finish(id, { state: 'succeeded' });
    else
      this.#executor.submit([
        {
          id,
          input,
          indexes,
          checkpoints: new Map([...checkpoints].map(([index, bytes]) => [index, decodeCheckpoint(bytes)])),
        },
      ]);
  }

  /** Takes a request out of the engine; its end comes as an event at the next step. */
  #drop(id: string, reason: string): void {
    if (!this.#active.has(id)) return;
    this.#options.log.info({ request_id: id, reason }, 'dropping');
    this.#executor.cancel(id);
  }

  #onEvents(events: readonly ExecutorEvent[]): void {
    for (const event of events) {
      if (event.type === 'engine-lost') void this.#onEngineLost(event.message, event.requestIds);
      else if (event.type !== 'stats') this.#onRequestEvent(event);
    }
  }

  #onRequestEvent(event: Exclude<ExecutorEvent, { type: 'stats' | 'engine-lost' }>): void {
    const request = this.#active.get(event.requestId);
    if (request === undefined) return;
    switch (event.type) {
      case 'progress':
        return request.progress(event);
      case 'row-releasing':
        return request.rowReleasing();
      case 'output':
        return request.output(event);
      case 'checkpoint':
        return request.checkpoint(event);
      case 'request-done':
        return void this.#finish(event.requestId, { state: 'succeeded' });
      case 'request-canceled':
        return void this.#finish(event.requestId, { state: 'canceled' });
      case 'request-failed': {
        const { code, message } = event;
        return void this.#finish(event.requestId, { state: 'failed', error: { code, message } });
      }
    }
  }

  async #finish(id: string, finish: Parameters<ActiveRequest['finish']>[0]): Promise<void> {
    const { log } = this.#options;
    const request = this.#active.get(id);
    if (request === undefined) return;
    try {
      const outcome = await request.finish(finish);
      log.info({ request_id: id, state: finish.state, outcome }, 'ended');
    } catch (error) {
      // Its lock runs out, and another delivery finds what is stored.
      log.error({ request_id: id, err: error }, 'could not finish');
    }
    this.#active.delete(id);
  }

  /** The engine process died under its requests: each goes back, its attempt counted, and a new engine is started. */
  async #onEngineLost(message: string, requestIds: readonly string[]): Promise<void> {
    const { store, card, log } = this.#options;
    log.error({ reason: message, requests: requestIds.length }, 'engine lost');
    if (this.#state === 'stopping') return;
    this.#state = 'loading';
    try {
      await this.#register();
      for (const id of requestIds) {
        const request = this.#active.get(id);
        this.#active.delete(id);
        if (request === undefined) continue;
        await request.settled();
        await giveBackRequest(store, card.id, this.#identity.workerId, request.delivery, 'failed');
      }
      await this.#executor.start();
      this.#state = 'ready';
      await this.#register();
    } catch (error) {
      // Without an engine this process is of no use; its supervisor starts it again, and the janitor returns what it had.
      log.fatal({ err: error }, 'could not start a new engine');
      process.exit(1);
    }
  }
}
