/**
 * One engine's connection to the system: registers, keeps its heartbeat, feeds leased requests to the
 * executor and writes back what comes out. Inference runs in another process, so that none of this ever waits for it.
 */
import { randomUUID } from 'node:crypto';
import type { Executor, ExecutorEvent } from '@darkroom/executor';
import { BaseService, Metrics, PeriodicLoop } from '@darkroom/service';
import {
  drainWorker,
  heartbeatWorker,
  type InboxMessage,
  type LeasedRequest,
  openInbox,
  publishModel,
  registerWorker,
  unregisterWorker,
  type WorkerIdentity,
  type WorkerInbox,
} from '@darkroom/store';
import { endHungEngine } from './engine/end-hung-engine.ts';
import { EngineWatch } from './engine/engine-watch.ts';
import { PaceMeter } from './meters/pace-meter.ts';
import { type DropReason, StepMeter } from './meters/step-meter.ts';
import { ActiveRequest, type EngineEnding, type EngineRequestEvent } from './request/active-request.ts';
import { gatherPreviews } from './request/gather-previews.ts';
import { type LeftToDo, readLeftToDo } from './request/left-to-do.ts';
import { StrangeLeases } from './request/strange-leases.ts';
import { WriteQueue } from './request/write-queue.ts';
import type { WorkerOptions } from './worker-options.ts';

/** How long one look into the inbox waits; a closing connection ends it sooner. */
const inboxWaitS = 1;

export class Worker extends BaseService {
  readonly #options: WorkerOptions;
  readonly #identity: WorkerIdentity;
  readonly #executor: Executor;
  readonly #writes: WriteQueue;
  /**
   * By token, which is also what the engine knows a request by: one that was lost and leased to this worker again is
   * here twice until the engine has let go of the first, and what is said of one must not be taken for the other's.
   */
  readonly #active = new Map<string, ActiveRequest>();
  readonly #receiving: PeriodicLoop;
  readonly #beating: PeriodicLoop;
  readonly #strange: StrangeLeases;
  readonly #inbox: WorkerInbox;
  readonly #pace = new PaceMeter();
  readonly #meter: StepMeter;
  readonly #watch: EngineWatch;
  #markDrained: () => void = () => {};
  readonly #drained = new Promise<void>((resolve) => (this.#markDrained = resolve));
  #state: 'loading' | 'ready' | 'stopping' = 'loading';
  #isReceiving = false;

  constructor(options: WorkerOptions) {
    super();
    this.#options = { ...options, encoder: gatherPreviews(options.encoder) };
    const { store, card, workerId, capacity, heartbeatMs, engineTimeoutMs, log } = options;
    const { metrics = new Metrics({ app: 'worker', log }) } = options;
    this.#meter = new StepMeter({ metrics, model: card.id, capacity });
    this.#watch = new EngineWatch({ timeoutMs: engineTimeoutMs, longestPauseMs: 2 * heartbeatMs });
    this.#identity = { model: card.id, workerId, incarnation: randomUUID() };
    this.#executor = options.createExecutor((events) => this.#onEvents(events));
    this.#writes = new WriteQueue({ store, identity: this.#identity });
    const isKnown = (token: string): boolean => this.#active.has(token);
    const strangeOptions = { store, identity: this.#identity, writes: this.#writes, heartbeatMs, isKnown, log };
    this.#strange = new StrangeLeases(strangeOptions);
    this.#inbox = openInbox(store, this.#identity);
    this.#receiving = new PeriodicLoop({ name: 'inbox', intervalMs: 0, runOnce: () => this.#receiveOnce(), log });
    this.#beating = new PeriodicLoop({
      name: 'heartbeat',
      intervalMs: heartbeatMs,
      runOnce: () => this.beatOnce(),
      log,
    });
  }

  /** Whether its model is loaded and it takes leases. */
  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** Ids of the requests it has. */
  get requestIds(): string[] {
    return [...this.#active.values()].map(({ delivery }) => delivery.id);
  }

  /** Says that it lives, by which its leases live too. One round trip. Ends an engine that hangs. */
  async beatOnce(): Promise<void> {
    const { store, log } = this.#options;
    const pace = this.#pace.read(this.#active);
    const remainingMs = pace && pace.costMs.slow * pace.remainingCost;
    if (this.#watch.isOverdue({ nowMs: performance.now(), remainingMs, stepMs: pace?.stepMs.slow }))
      endHungEngine(this.#executor, { timesOverdue: this.#watch.timesOverdue, requests: this.#active.size, log });
    const { lastRead } = this.#inbox;
    if ((await heartbeatWorker(store, this.#identity, { pace, lastRead })) === 'alive') return;
    // Its inbox was buried with it, the drain's message included.
    if (this.#isStopping()) return this.#markDrained();
    this.#meter.takenForDead();
    log.warn({ requests: this.#active.size }, 'taken for dead while alive; registering again');
    for (const request of this.#active.values()) this.#drop(request, 'buried');
    this.#inbox.startOver();
    await this.#register();
  }

  protected override async onStart(): Promise<void> {
    const { card, log } = this.#options;
    this.#state = 'loading';
    await this.#register();
    await this.#beating.start();
    await this.#load();
    this.#state = 'ready';
    await this.#register();
    this.#isReceiving = true;
    await this.#receiving.start();
    await this.#strange.start();
    log.info({ model: card.id, worker: this.#identity.workerId, capacity: this.#options.capacity }, 'serving');
  }

  /** No new lease, every row checkpointed and given back, then gone. */
  protected override async onStop(): Promise<void> {
    const { store } = this.#options;
    this.#state = 'stopping';
    // The inbox ends with the drain's own message, so that no lease before it is overlooked.
    if ((await drainWorker(store, this.#identity)) && this.#isReceiving) await this.#drained;
    await this.#receiving.stop();
    await this.#strange.stop();
    await this.#executor.shutdown({ shouldCheckpoint: true });
    await this.#beating.stop();
    // What has left the engine only has to be stored.
    const requests = [...this.#active.values()];
    await Promise.all(requests.map((request) => request.ending ?? this.#giveBack(request, 'worker_stopped')));
    this.#active.clear();
    this.#inbox.close();
    await unregisterWorker(store, this.#identity);
  }

  /** A stop does not wait until the model is there: nothing has to be given back before that. */
  async #load(): Promise<void> {
    const { loads, stopSignal } = this.#options;
    stopSignal?.throwIfAborted();
    const abandon = (): void => void this.#executor.shutdown();
    stopSignal?.addEventListener('abort', abandon, { once: true });
    const starting = loads.watch(() => this.#executor.start());
    await starting.finally(() => stopSignal?.removeEventListener('abort', abandon));
    stopSignal?.throwIfAborted();
  }

  async #register(): Promise<void> {
    const { store, card, capacity, loads, info } = this.#options;
    const state = this.#state === 'ready' ? 'ready' : 'loading';
    // Not before it has loaded: what cannot be loaded must not be asked for. Each time, since Redis may have lost it.
    if (state === 'ready') await Promise.all([publishModel(store, card), loads.clear()]);
    await registerWorker(store, this.#identity, { state, capacity, info });
  }

  async #receiveOnce(): Promise<void> {
    const { log } = this.#options;
    for (const message of await this.#inbox.next(inboxWaitS))
      // They are read, and the others are not to be lost with one.
      await this.#receive(message).catch((error: unknown) => log.error({ err: error }, 'could not take a message'));
    this.#strange.received();
  }

  async #receive(message: InboxMessage): Promise<void> {
    switch (message.type) {
      case 'cancel':
        if (!this.#active.has(message.token)) return this.#strange.giveBack(message);
        return this.#drop(this.#active.get(message.token)!, 'canceled');
      case 'drained':
        return this.#markDrained();
      case 'run':
        await Promise.all(message.requests.map((leased) => this.#accept(leased)));
    }
  }

  /** Begins what was leased, or gives it back: nothing may stay here that no engine has. */
  async #accept(leased: LeasedRequest): Promise<void> {
    const { store, log } = this.#options;
    // Read again, because the inbox was to start over and is still the same.
    if (this.#active.has(leased.token)) return;
    const request = this.#createRequest(leased);
    this.#active.set(leased.token, request);
    try {
      const left = await readLeftToDo(store, leased);
      request.goOnFrom(left);
      this.#begin(request, { ...left, attempt: leased.attempt });
    } catch (error) {
      this.#active.delete(leased.token);
      // Without an engine, because it has just died or this worker stops, it is none of the request's doing.
      const reason = this.#state === 'ready' ? 'engine_failed' : 'worker_stopped';
      log.error({ request_id: leased.envelope.id, err: error, reason }, 'could not begin');
      await request.giveBack(reason);
    }
  }

  #createRequest(leased: LeasedRequest): ActiveRequest {
    const { encoder, chunkBytes, log } = this.#options;
    const request: ActiveRequest = new ActiveRequest({
      writes: this.#writes,
      leased,
      encoder,
      chunkBytes,
      onRefused: (outcome) => this.#drop(request, outcome),
      onError: (error) => log.error({ request_id: leased.envelope.id, err: error }, 'could not write'),
    });
    return request;
  }

  #begin(request: ActiveRequest, { indexes, checkpoints, attempt }: LeftToDo & { attempt: number }): void {
    const { id, outputs, input } = request.envelope;
    const { token } = request.delivery;
    this.#options.log.info({ request_id: id, attempt, outputs, resumed: checkpoints.size }, 'started');
    // It was canceled, or this worker taken for dead, while this was read.
    if (request.dropped !== undefined) return this.#finish(request, { state: 'canceled' });
    if (indexes.length === 0) return this.#finish(request, { state: 'succeeded' });
    this.#executor.submit([{ id: token, input, indexes, checkpoints }]);
    this.#watch.submitted(token);
  }

  /** Takes a request out of the engine; its end comes as an event at the next step. */
  #drop(request: ActiveRequest, reason: DropReason): void {
    const { id, token } = request.delivery;
    // Every row of it may be refused; it is dropped once.
    if (!this.#active.has(token) || request.dropped !== undefined) return;
    request.dropped = reason;
    this.#meter.dropped(reason);
    this.#options.log.info({ request_id: id, reason }, 'dropping');
    this.#executor.cancel(token);
  }

  #onEvents(events: readonly ExecutorEvent[]): void {
    this.#pace.observe(events, this.#active, performance.now());
    this.#meter.observe(events);
    this.#watch.observe(events);
    for (const event of events) {
      if (event.type === 'engine-lost') void this.#onEngineLost(event.message, event.requestIds);
      else if (event.type !== 'stats') this.#onRequestEvent(event);
    }
  }

  #onRequestEvent(event: EngineRequestEvent): void {
    const request = this.#active.get(event.requestId);
    const ending = request?.observe(event);
    if (request !== undefined && ending !== undefined) this.#finish(request, ending);
  }

  #finish(request: ActiveRequest, ending: EngineEnding): void {
    request.ending = this.#storeEnd(request, ending);
  }

  async #storeEnd(request: ActiveRequest, ending: EngineEnding): Promise<void> {
    const { log } = this.#options;
    const { id, token } = request.delivery;
    try {
      const outcome = await request.finish(ending);
      log.info({ request_id: id, state: ending.state, outcome }, 'ended');
    } catch (error) {
      // Somebody goes on from what is stored, if it is not over by then.
      log.error({ request_id: id, err: error }, 'could not finish');
      void this.#strange.giveBack(request.delivery, 'engine_failed');
    }
    this.#active.delete(token);
  }

  async #giveBack(request: ActiveRequest, reason: 'worker_stopped' | 'engine_failed'): Promise<void> {
    const outcome = await request.giveBack(reason);
    this.#options.log.info({ request_id: request.delivery.id, reason, outcome }, 'given back');
  }

  /** Asked again after every wait, since a stop may come meanwhile. */
  #isStopping(): boolean {
    return this.#state === 'stopping';
  }

  /** The engine process died under its requests: each goes back, its attempt counted, and a new engine is started. */
  async #onEngineLost(message: string, tokens: readonly string[]): Promise<void> {
    const { loads, log } = this.#options;
    log.error({ reason: message, requests: tokens.length }, 'engine lost');
    if (this.#isStopping()) return;
    this.#state = 'loading';
    try {
      await this.#register();
      const lost = tokens.map((token) => this.#active.get(token)).filter((request) => request !== undefined);
      for (const { delivery } of lost) this.#active.delete(delivery.token);
      await Promise.all(lost.map((request) => this.#giveBack(request, 'engine_failed')));
      if (this.#isStopping()) return;
      await loads.watch(() => this.#executor.start());
      if (this.#isStopping()) return;
      this.#state = 'ready';
      await this.#register();
    } catch (error) {
      if (this.#isStopping()) return;
      // Without an engine this process is of no use; its supervisor starts it again, and the janitor returns what it had.
      log.fatal({ err: error }, 'could not start a new engine');
      process.exit(1);
    }
  }
}
