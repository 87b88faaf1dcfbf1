/**
 * One engine's connection to the system: registers, keeps its heartbeat, feeds leased requests to the
 * executor and writes back what comes out. Inference runs in another process, so that none of this ever waits for it.
 */
import { randomUUID } from 'node:crypto';
import type { EventOf, Executor, ExecutorListener } from '@darkroom/executor';
import { BaseService, PeriodicLoop } from '@darkroom/service';
import {
  drainWorker,
  heartbeatWorker,
  type InboxMessage,
  type LeasedRequest,
  openInbox,
  type RequestEnd,
  unregisterWorker,
  type WorkerIdentity,
  type WorkerInbox,
} from '@darkroom/store';
import { EngineLife } from './engine/engine-life.ts';
import { OperatorCommands } from './engine/operator-commands.ts';
import { HotSwap } from './files/hot-swap.ts';
import { EngineMeters } from './meters/engine-meters.ts';
import type { DropReason } from './meters/step-meter.ts';
import { ActiveRequest, type ActiveRequestOptions, type GiveBackReason } from './request/active-request.ts';
import { BytesKeeper } from './request/bytes-keeper.ts';
import { gatherPreviews } from './request/gather-previews.ts';
import { checkpointsFor, readLeftToDo } from './request/left-to-do.ts';
import { logTrouble } from './request/log-trouble.ts';
import { StrangeLeases } from './request/strange-leases.ts';
import { WriteQueue } from './request/write-queue.ts';
import { Registration } from './shards/registration.ts';
import type { WorkerOptions } from './worker-options.ts';

/** How long one look into the inbox waits; a closing connection ends it sooner. */
const inboxWaitS = 1;
/** And where it is to go to another shard as soon as it has ended what it has. */
const leavingWaitS = 0.05;

export class Worker extends BaseService<WorkerOptions> {
  readonly #identity: WorkerIdentity;
  readonly #executor: Executor;
  readonly #engine: EngineLife;
  readonly #requestOptions: ActiveRequestOptions;
  /**
   * By token, which is also what the engine knows a request by: one that was lost and leased to this worker again is
   * here twice until the engine has let go of the first, and what is said of one must not be taken for the other's.
   */
  readonly #active = new Map<string, ActiveRequest>();
  /** Once its model is loaded. */
  readonly #serving: readonly PeriodicLoop[];
  readonly #beating: PeriodicLoop;
  readonly #strange: StrangeLeases;
  readonly #inbox: WorkerInbox;
  readonly #registration: Registration;
  readonly #meters: EngineMeters;
  readonly #swap: HotSwap;
  readonly #commands: OperatorCommands;
  #markDrained: () => void = () => {};
  readonly #drained = new Promise<void>((resolve) => (this.#markDrained = resolve));
  #isReceiving = false;

  constructor(options: WorkerOptions) {
    super(options);
    const { store, card, workerId, capacity, chunkBytes, heartbeatMs, engineTimeoutMs, encoder, log } = options;
    const patience = { timeoutMs: engineTimeoutMs, longestPauseMs: 2 * heartbeatMs };
    this.#meters = new EngineMeters({ metrics: options.metrics, model: card.id, capacity, ...patience });
    const identity = { model: card.id, workerId, incarnation: randomUUID() };
    this.#identity = identity;
    this.#executor = options.createExecutor((events) => this.#onEvents(events));
    const isBusy = (): boolean => this.#active.size > 0;
    const register = (): ReturnType<Registration['say']> => this.#registration.say();
    const prepare = (): Promise<void> => {
      this.#meters.watch.renew();
      return options.prepare?.() ?? Promise.resolve();
    };
    this.#engine = new EngineLife({ ...options, executor: this.#executor, isBusy, prepare, register });
    // Turns to load anew are of a model, and not of a shard.
    const ofModel = { ...identity };
    this.#swap = new HotSwap({ ...options, identity: ofModel, engine: this.#engine, meters: this.#meters, register });
    const parts = { executor: this.#executor, engine: this.#engine, swap: this.#swap };
    this.#commands = new OperatorCommands({ ...options, identity, ...parts });
    const writes = new WriteQueue({ store, identity });
    this.#requestOptions = {
      writes,
      bytes: new BytesKeeper({ store, log }),
      encoder: gatherPreviews(encoder),
      chunkBytes,
      origin: () => this.#swap.origin,
      onRefused: (request, outcome) => this.#drop(request, outcome),
      onError: ({ delivery }, error) => log.error({ request_id: delivery.id, err: error }, 'could not write'),
    };
    this.#strange = new StrangeLeases({ ...options, identity, writes, isKnown: (token) => this.#active.has(token) });
    this.#inbox = openInbox(store, identity);
    this.#registration = new Registration({
      worker: options,
      ...parts,
      identity,
      meters: this.#meters,
      inbox: this.#inbox,
      isBusy,
    });
    const receiving = new PeriodicLoop({ name: 'inbox', intervalMs: 0, runOnce: () => this.#receiveOnce(), log });
    this.#serving = [receiving, this.#strange, this.#swap];
    const runOnce = (): Promise<void> => this.beatOnce();
    this.#beating = new PeriodicLoop({ name: 'heartbeat', intervalMs: heartbeatMs, runOnce, log });
  }

  /** Whether it takes leases: its model is loaded, or asleep. */
  get isReady(): boolean {
    return this.#engine.isOpen;
  }

  get requestIds(): string[] {
    return [...this.#active.values()].map(({ delivery }) => delivery.id);
  }

  /** Says that it lives, by which its leases live too. One round trip. Ends an engine that hangs. */
  async beatOnce(): Promise<void> {
    const { store, log } = this.options;
    const pace = this.#meters.read(this.#active, this.#executor, log);
    this.#engine.look();
    await this.#swap.keepTurn();
    if (this.#registration.isBetween) return;
    const { model } = this.#identity;
    const { lastRead } = this.#inbox;
    if ((await heartbeatWorker(store, this.#identity, { pace, lastRead })) === 'alive') return;
    // It has gone from there.
    if (this.#identity.model !== model) return;
    // Its inbox was buried with it, the drain's message included.
    if (this.#engine.isStopping) return this.#markDrained();
    this.#meters.steps.takenForDead();
    log.warn({ requests: this.#active.size }, 'taken for dead while alive; registering again');
    for (const request of this.#active.values()) this.#drop(request, 'buried');
    this.#inbox.startOver();
    await this.#registration.say();
  }

  protected override async onStart(): Promise<void> {
    const { card, log } = this.options;
    await this.#registration.say();
    await this.#beating.start();
    await this.#engine.load();
    this.#isReceiving = true;
    for (const loop of this.#serving) await loop.start();
    log.info({ model: card.id, worker: this.#identity.workerId, capacity: this.#registration.capacity }, 'serving');
  }

  /** No new lease, every row checkpointed and given back, then gone. */
  protected override async onStop(): Promise<void> {
    const { store } = this.options;
    this.#engine.stop();
    this.#requestOptions.bytes.stop();
    // The inbox ends with the drain's own message, so that no lease before it is overlooked.
    if ((await drainWorker(store, this.#identity)) && this.#isReceiving) await this.#drained;
    for (const loop of this.#serving) await loop.stop();
    await this.#executor.shutdown({ shouldCheckpoint: true });
    this.options.shared?.place.free();
    await this.#beating.stop();
    // What has left the engine only has to be stored.
    const requests = [...this.#active.values()];
    await Promise.all(requests.map((request) => request.ending ?? this.#giveBack(request, 'worker_stopped')));
    this.#active.clear();
    this.#inbox.close();
    await unregisterWorker(store, this.#identity);
  }

  async #receiveOnce(): Promise<void> {
    const waitS = this.#registration.isLeaving ? leavingWaitS : inboxWaitS;
    for (const message of await this.#inbox.next(waitS)) this.#receive(message);
    this.#strange.received();
    await this.#registration.lookOnce();
  }

  /** What comes next waits for nothing that this begins. */
  #receive(message: InboxMessage): void {
    if (message.type === 'drained') return this.#markDrained();
    if (message.type === 'follow') return this.#active.get(message.token)?.progress.follow(message.forMs);
    if (message.type === 'move') return this.#registration.move(message.to, message.isPatient);
    if (message.type === 'run') for (const leased of message.requests) void this.#accept(leased);
    else if (message.type !== 'cancel') void this.#commands.obey(message);
    else {
      const request = this.#active.get(message.token);
      if (request === undefined) void this.#strange.giveBack(message);
      else this.#drop(request, 'canceled');
    }
  }

  /** Begins what was leased, or gives it back: nothing may stay here that no engine has. */
  async #accept(leased: LeasedRequest): Promise<void> {
    const { store, log } = this.options;
    // Read again, because the inbox was to start over and is still the same.
    if (this.#active.has(leased.token)) return;
    const request = new ActiveRequest(leased, this.#requestOptions);
    this.#active.set(leased.token, request);
    this.options.shared?.place.used();
    try {
      const left = await readLeftToDo(store, leased, () =>
        this.#requestOptions.bytes.readAttachments(leased.envelope.id, request.leaving.signal),
      );
      // It was given back, or its end stored, while this was read.
      if (this.#active.get(leased.token) !== request || request.ending !== undefined) return;
      // Canceled, or this worker taken for dead; or it stops, and gives back all that it has.
      if (left === undefined) return request.dropped && this.#finish(request, { state: 'canceled' });
      request.resume(left);
      const { id, owner, outputs, input } = leased.envelope;
      log.info({ request_id: id, attempt: leased.attempt, outputs, resumed: left.checkpoints.size }, 'started');
      if (this.#engine.state === 'asleep' && !(await this.#isAwakeFor(request))) return;
      // It was canceled, or this worker taken for dead.
      if (request.dropped !== undefined) return this.#finish(request, { state: 'canceled' });
      if (left.indexes.length === 0) return this.#finish(request, { state: 'succeeded', outputs });
      const checkpoints = checkpointsFor(left, this.#swap.origin);
      const { indexes, attachments } = left;
      const asked = { id: leased.token, owner, input, indexes, checkpoints };
      this.#executor.submit([attachments === undefined ? asked : { ...asked, attachments }]);
      this.#meters.submitted(leased.token);
    } catch (error) {
      // Without an engine, because it has just died or this worker stops, it is none of the request's doing.
      const reason = this.#engine.state === 'ready' ? 'engine_failed' : 'worker_stopped';
      log.error({ request_id: leased.envelope.id, err: error, reason }, 'could not begin');
      await this.#giveBackLost([leased.token], reason);
    }
  }

  /** @returns false if the request was canceled meanwhile, or the model could not be loaded: then it is given back, and that is no attempt. */
  async #isAwakeFor(request: ActiveRequest): Promise<boolean> {
    request.sayLoading(this.options.shared?.place.waitMs ?? 0);
    const isAwake = await this.#engine.wake({ isAsked: false });
    if (request.ending !== undefined) return false;
    if (!isAwake) await this.#giveBackLost([request.delivery.token], 'worker_stopped');
    return isAwake;
  }

  /** Takes a request out of the engine; its end comes as an event at the next step. */
  #drop(request: ActiveRequest, reason: DropReason): void {
    const { id, token } = request.delivery;
    // Every row of it may be refused; it is dropped once.
    if (!this.#active.has(token) || request.dropped !== undefined) return;
    request.dropped = reason;
    request.leaving.abort();
    this.#meters.steps.dropped(reason);
    this.options.log.info({ request_id: id, reason }, 'dropping');
    // Nothing is in an engine that is not there yet.
    if (this.#engine.state === 'asleep') this.#finish(request, { state: 'canceled' });
    else this.#executor.cancel(token);
  }

  #onEvents(events: Parameters<ExecutorListener>[0]): void {
    this.#meters.observe(events, this.#active);
    for (const event of events) {
      logTrouble(event, this.#active, this.options.log);
      if (event.type === 'engine-lost') void this.#onEngineLost(event);
      if (event.type === 'request-lost') void this.#giveBackLost([event.requestId]);
      if (event.type === 'engine-lost' || event.type === 'request-lost' || event.type === 'stats') continue;
      const request = this.#active.get(event.requestId);
      const end = request?.observe(event);
      if (request !== undefined && end !== undefined) this.#finish(request, end);
    }
  }

  #finish(request: ActiveRequest, end: RequestEnd): void {
    const { log } = this.options;
    const { id, token } = request.delivery;
    request.ending = request
      .finish(end)
      .then((outcome) => log.info({ request_id: id, state: end.state, outcome }, 'ended'))
      .catch((error: unknown) => {
        // Somebody goes on from what is stored, if it is not over by then.
        log.error({ request_id: id, err: error }, 'could not finish');
        void this.#strange.giveBack(request.delivery, 'engine_failed');
      })
      .finally(() => {
        this.#active.delete(token);
        this.#engine.look();
      });
  }

  async #giveBack(request: ActiveRequest, reason: GiveBackReason): Promise<void> {
    const outcome = await request.giveBack(reason);
    this.options.log.info({ request_id: request.delivery.id, reason, outcome }, 'given back');
  }

  /** What broke off goes back, its attempt counted by default, and the others go on. */
  async #giveBackLost(tokens: readonly string[], reason: GiveBackReason = 'engine_failed'): Promise<void> {
    const lost = tokens.map((token) => this.#active.get(token)).filter((request) => request !== undefined);
    for (const { delivery } of lost) this.#active.delete(delivery.token);
    const givingBack = Promise.all(lost.map((request) => this.#giveBack(request, reason)));
    // What could not be is a strange lease from then on.
    await givingBack.catch((error: unknown) => this.options.log.error({ err: error }, 'could not give back'));
  }

  /** The engine process died under its requests: each goes back, its attempt counted unless any had come to that, and a new engine is started, as often as it takes. */
  async #onEngineLost({ message, requestIds: tokens, isBlameless }: EventOf<'engine-lost'>): Promise<void> {
    this.options.log.error({ reason: message, requests: tokens.length }, 'engine lost');
    if (this.#engine.isStopping) return;
    const reason = isBlameless === true ? 'worker_stopped' : 'engine_failed';
    await this.#engine.restart(() => this.#giveBackLost(tokens, reason));
  }
}
