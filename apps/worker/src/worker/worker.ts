/**
 * Connects one engine to the queue: registers in Redis, sends heartbeats, submits leased requests to the executor, and
 * writes the executor's events and results. Inference runs in another process and never blocks this one.
 */
import { randomUUID } from 'node:crypto';
import { type Failure, failureOf } from '@darkroom/core';
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
import { EngineLife } from '../engine/engine-life.ts';
import { OperatorCommands } from './operator-commands.ts';
import { FileWatch } from './file-watch.ts';
import { EngineMeters } from '../meters/engine-meters.ts';
import { ActiveRequest, type ActiveRequestOptions } from '../request/active-request.ts';
import { BytesKeeper } from '../request/bytes-keeper.ts';
import type { DropReason } from '../request/drop-reason.ts';
import { OutputEncoder } from '../request/output-encoder.ts';
import { checkpointsFor, readResumeState } from '../request/resume-state.ts';
import { logFailures } from '../request/log-failures.ts';
import { OrphanedLeases } from '../request/orphaned-leases.ts';
import { FlushTimer } from '../request/unread-progress.ts';
import { WriteQueue } from '../request/write-queue.ts';
import { Registration } from './registration.ts';
import type { WorkerOptions } from './worker-options.ts';

/** Blocking time of one inbox read. Closing the connection ends the read sooner. */
const inboxWaitS = 1;
/** Blocking time of one inbox read while a move to another shard is pending. */
const movingWaitS = 0.05;

export class Worker extends BaseService<WorkerOptions> {
  readonly #executor: Executor;
  readonly #engine: EngineLife;
  readonly #requestOptions: ActiveRequestOptions;
  /** By lease token. A request that was lost and leased again has two entries until the engine drops the first. */
  readonly #active = new Map<string, ActiveRequest>();
  /** Loops that run once the model is loaded. */
  readonly #serving: readonly PeriodicLoop[];
  readonly #heartbeat: PeriodicLoop;
  readonly #orphans: OrphanedLeases;
  readonly #inbox: WorkerInbox;
  readonly #registration: Registration;
  readonly #meters: EngineMeters;
  readonly #files: FileWatch;
  readonly #commands: OperatorCommands;
  #markDrained: () => void = () => {};
  readonly #drained = new Promise<void>((resolve) => (this.#markDrained = resolve));
  #isReceiving = false;

  constructor(options: WorkerOptions) {
    super(options);
    const { store, card, workerId, capacity, heartbeatMs, engineTimeoutMs, kinds, log } = options;
    const hangLimits = { timeoutMs: engineTimeoutMs, maxGapMs: 2 * heartbeatMs };
    this.#meters = new EngineMeters({ metrics: options.metrics, model: card.id, capacity, ...hangLimits });
    const identity = { shard: card.id, workerId, incarnation: randomUUID() };
    const getIdentity = (): WorkerIdentity => this.#registration.identity;
    this.#executor = options.createExecutor((events) => this.#onEvents(events));
    const isBusy = (): boolean => this.#active.size > 0;
    const register = (): ReturnType<Registration['publish']> => this.#registration.publish();
    const prepare = (): Promise<void> => {
      this.#meters.watch.reset();
      return options.prepare?.() ?? Promise.resolve();
    };
    this.#engine = new EngineLife({ ...options, executor: this.#executor, isBusy, prepare, register });
    this.#files = new FileWatch({ ...options, model: card.id, engine: this.#engine, meters: this.#meters, register });
    const parts = { executor: this.#executor, engine: this.#engine, files: this.#files, meters: this.#meters };
    this.#commands = new OperatorCommands({ ...options, getIdentity, ...parts });
    const writes = new WriteQueue({ store, getIdentity });
    this.#requestOptions = {
      writes,
      bytes: new BytesKeeper({ store, log }),
      encoder: new OutputEncoder(kinds),
      flushTimer: new FlushTimer(),
      modelDigest: () => this.#files.modelDigest,
      onRefused: (request, outcome) => this.#drop(request, outcome),
      onError: ({ delivery }, error) => log.error({ request_id: delivery.id, err: error }, 'could not write'),
    };
    const isKnown = (token: string): boolean => this.#active.has(token);
    this.#orphans = new OrphanedLeases({ ...options, getIdentity, writes, isKnown });
    this.#inbox = openInbox(store, getIdentity);
    this.#registration = new Registration({ worker: options, ...parts, identity, inbox: this.#inbox, isBusy });
    const receiving = new PeriodicLoop({ name: 'inbox', intervalMs: 0, runOnce: () => this.#receiveOnce(), log });
    this.#serving = [receiving, this.#orphans, this.#files];
    const runOnce = (): Promise<void> => this.heartbeatOnce();
    this.#heartbeat = new PeriodicLoop({ name: 'heartbeat', intervalMs: heartbeatMs, runOnce, log });
  }

  /** True if the worker takes leases: its model is loaded or asleep. */
  get isReady(): boolean {
    return this.#engine.acceptsLeases;
  }

  get requestIds(): string[] {
    return [...this.#active.values()].map(({ delivery }) => delivery.id);
  }

  /** Sends a heartbeat, which renews the worker's leases, in one round trip. Kills a hung engine. */
  async heartbeatOnce(): Promise<void> {
    const { store, log } = this.options;
    const pace = this.#meters.read(this.#active, this.#executor, log);
    this.#engine.reconcile();
    if (this.#registration.isUnregistered) return;
    const { identity } = this.#registration;
    const { lastRead } = this.#inbox;
    if ((await heartbeatWorker(store, identity, { pace, lastRead })) === 'alive') return;
    // The worker moved to another shard during the call.
    if (this.#registration.identity !== identity) return;
    // Reaping deleted the inbox with the drained message: stop waiting for it.
    if (this.#engine.isStopping) return this.#markDrained();
    this.#meters.steps.reapedAlive();
    log.warn({ requests: this.#active.size }, 'reaped while alive; registering again');
    for (const request of this.#active.values()) this.#drop(request, 'reaped');
    this.#inbox.startOver();
    await this.#registration.publish();
  }

  protected override async onStart(): Promise<void> {
    const { card, log } = this.options;
    await this.#registration.publish();
    await this.#heartbeat.start();
    await this.#engine.load();
    this.#isReceiving = true;
    for (const loop of this.#serving) await loop.start();
    log.info({ model: card.id, worker: this.options.workerId, capacity: this.#registration.capacity }, 'serving');
  }

  /** Drains the worker: stops taking leases, checkpoints and requeues all requests, and unregisters. */
  protected override async onStop(): Promise<void> {
    this.#engine.stop();
    this.#requestOptions.bytes.stop();
    try {
      // Wait for the drained message. It is the last one in the inbox, so no earlier lease is missed.
      const isDraining = await drainWorker(this.options.store, this.#registration.identity);
      if (isDraining && this.#isReceiving) await this.#drained;
    } finally {
      await this.#release();
    }
  }

  /** Requeues all requests and releases all resources: a restart goes on in this process. */
  async #release(): Promise<void> {
    for (const loop of this.#serving) await loop.stop();
    this.#inbox.close();
    await this.#executor.shutdown({ shouldCheckpoint: true });
    this.#meters.steps.clear();
    this.options.shared?.allocation.free();
    await this.#heartbeat.stop();
    // Requests that have left the engine only need their end stored.
    const requests = [...this.#active.values()];
    await Promise.all(requests.map((request) => request.ending ?? this.#requeue(request)));
    this.#active.clear();
    await unregisterWorker(this.options.store, this.#registration.identity);
  }

  async #receiveOnce(): Promise<void> {
    const waitS = this.#registration.isLeaving ? movingWaitS : inboxWaitS;
    for (const message of await this.#inbox.next(waitS)) this.#receive(message);
    this.#orphans.received();
    await this.#registration.moveIfReady();
  }

  /** Handles a message. Does not wait for the work that the message starts. */
  #receive(message: InboxMessage): void {
    if (message.type === 'drained') return this.#markDrained();
    if (message.type === 'follow') return this.#active.get(message.token)?.progress.follow(message.forMs);
    if (message.type === 'move') return this.#registration.move(message.to, message.isPatient);
    if (message.type === 'run') for (const leased of message.requests) void this.#accept(leased);
    else if (message.type !== 'cancel') void this.#commands.execute(message);
    else {
      const request = this.#active.get(message.token);
      if (request === undefined) void this.#orphans.requeue(message);
      else this.#drop(request, 'canceled');
    }
  }

  /** Submits a leased request to the engine, or requeues it: no request may stay active outside the engine. */
  async #accept(leased: LeasedRequest): Promise<void> {
    const { store, log } = this.options;
    // The request was received before: the inbox was reread from the start.
    if (this.#active.has(leased.token)) return;
    const request = new ActiveRequest(leased, this.#requestOptions);
    this.#active.set(leased.token, request);
    this.options.shared?.allocation.touch();
    try {
      const resumeState = await readResumeState(store, leased, () =>
        this.#requestOptions.bytes.readAttachments(leased.envelope.id, request.discarding.signal),
      );
      // The request was requeued or ended during the read.
      if (this.#active.get(leased.token) !== request || request.ending !== undefined) return;
      // The read was aborted: the request was dropped, or the worker is stopping and `onStop` requeues the request.
      if (resumeState === undefined) return request.dropped && this.#finish(request, { state: 'canceled' });
      request.resume(resumeState);
      const { id, owner, outputs, input } = leased.envelope;
      log.info({ request_id: id, attempt: leased.attempt, outputs, resumed: resumeState.checkpoints.size }, 'started');
      if (this.#engine.state === 'asleep' && !(await this.#wakeFor(request))) return;
      // The request was canceled, or this worker was reaped.
      if (request.dropped !== undefined) return this.#finish(request, { state: 'canceled' });
      if (resumeState.indexes.length === 0) return this.#finish(request, { state: 'succeeded', outputs });
      const checkpoints = checkpointsFor(resumeState, this.#files.modelDigest);
      const { indexes, attachments } = resumeState;
      const submission = { id: leased.token, owner, input, indexes, checkpoints };
      this.#executor.submit([attachments === undefined ? submission : { ...submission, attachments }]);
      this.#meters.submitted(leased.token);
    } catch (error) {
      // If the engine has died or this worker is stopping, do not count an attempt of the request.
      const failure = this.#engine.state === 'ready' ? failureOf(error) : undefined;
      log.error({ request_id: leased.envelope.id, err: error, failure }, 'could not start the request');
      await this.#requeueLost([leased.token], failure);
    }
  }

  /** Loads the sleeping model. Returns false if the request has ended, or was requeued because the load failed. */
  async #wakeFor(request: ActiveRequest): Promise<boolean> {
    request.writeLoading(this.options.shared?.allocation.waitMs ?? 0);
    const isAwake = await this.#engine.wake({ isExplicit: false });
    if (request.ending !== undefined) return false;
    if (!isAwake) await this.#requeueLost([request.delivery.token]);
    return isAwake;
  }

  /** Cancels a request in the engine. The engine reports the end of the request at its next step. */
  #drop(request: ActiveRequest, reason: DropReason): void {
    const { id, token } = request.delivery;
    // Each refused write of the request calls this; drop the request once.
    if (!this.#active.has(token) || request.dropped !== undefined) return;
    request.dropped = reason;
    request.discarding.abort();
    this.#meters.steps.dropped(reason);
    this.options.log.info({ request_id: id, reason }, 'dropping request');
    // A sleeping engine has no requests.
    if (this.#engine.state === 'asleep') this.#finish(request, { state: 'canceled' });
    else this.#executor.cancel(token);
  }

  #onEvents(events: Parameters<ExecutorListener>[0]): void {
    this.#meters.observe(events, this.#active);
    for (const event of events) {
      logFailures(event, this.#active, this.options.log);
      if (event.type === 'engine-lost') this.#onEngineLost(event);
      if (event.type === 'request-lost')
        void this.#requeueLost([event.requestId], failureOf(event.message, event.code, event.stack));
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
        // Requeue the request, so that it resumes from its stored state. An expired request is not requeued.
        log.error({ request_id: id, err: error }, 'could not store the end of the request');
        void this.#orphans.requeue(request.delivery, { failure: failureOf(error) });
      })
      .finally(() => {
        this.#active.delete(token);
        this.options.shared?.allocation.touch();
        this.#engine.reconcile();
      });
  }

  async #requeue(request: ActiveRequest, failure?: Failure): Promise<void> {
    const outcome = await request.requeue(failure);
    this.options.log.info({ request_id: request.delivery.id, code: failure?.code, outcome }, 'requeued');
  }

  /** Requeues requests that the engine lost. Counts an attempt of each if there is a failure. */
  async #requeueLost(tokens: readonly string[], failure?: Failure): Promise<void> {
    const lost = tokens.map((token) => this.#active.get(token)).filter((request) => request !== undefined);
    for (const { delivery } of lost) this.#active.delete(delivery.token);
    const requeuing = Promise.all(lost.map((request) => this.#requeue(request, failure)));
    // If the requeue fails, the lease is an orphaned lease from now on.
    await requeuing.catch((error: unknown) => this.options.log.error({ err: error }, 'could not requeue'));
  }

  /** Requeues the requests of a dead engine and restarts it. Counts an attempt of each unless `countsNoAttempt`. */
  #onEngineLost({ message, code, requestIds: tokens, countsNoAttempt }: EventOf<'engine-lost'>): void {
    this.options.log.error({ reason: message, requests: tokens.length }, 'engine lost');
    if (this.#engine.isStopping) return;
    const failure = countsNoAttempt === true ? undefined : failureOf(message, code);
    // Restart without a pause if requests may have caused the crash: their attempts limit how often it can repeat.
    const options = { isCausedByRequest: failure !== undefined && tokens.length > 0 };
    this.#engine.replaceLost(() => this.#requeueLost(tokens, failure), options);
  }
}
