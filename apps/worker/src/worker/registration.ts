/** A worker's registration: its shard, capacity, and whether it takes leases. */
import type { Executor } from '@darkroom/executor';
import {
  isDrained,
  publishModel,
  registerWorker,
  unregisterWorker,
  type WorkerIdentity,
  type WorkerInbox,
} from '@darkroom/store';
import type { EngineLife } from '../engine/engine-life.ts';
import type { FileWatch } from './file-watch.ts';
import type { EngineMeters } from '../meters/engine-meters.ts';
import type { WorkerOptions } from './worker-options.ts';

type RegisterResult = 'registered' | 'leased';

export interface RegistrationOptions {
  worker: Pick<WorkerOptions, 'store' | 'loads' | 'asset' | 'capacity' | 'log'>;
  /** The worker at its start. */
  identity: WorkerIdentity;
  engine: Pick<EngineLife, 'card' | 'acceptsLeases' | 'isStopping' | 'loadMs' | 'state'>;
  executor: Pick<Executor, 'maxSlots'>;
  files: Pick<FileWatch, 'info'>;
  meters: Pick<EngineMeters, 'steps'>;
  inbox: Pick<WorkerInbox, 'startOver'>;
  isBusy: () => boolean;
}

/**
 * Registers a worker and moves it between shards: publish capacity 0, end the running requests, unregister, register in
 * the new shard. It takes leases in at most one shard at any time, so it knows all its leases whatever fails on the
 * way.
 */
export class Registration {
  readonly #options: RegistrationOptions;
  #identity: WorkerIdentity;
  /** Shard to move to. */
  #target: { shard: string; isPatient: boolean } | undefined;
  #moveAnnounced = false;
  /** The move was called off, and the restored capacity is not published yet. */
  #stayPending = false;
  #isUnregistered = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#identity = options.identity;
  }

  /** The worker in its current shard. A move replaces the object: read it once per operation. */
  get identity(): WorkerIdentity {
    return this.#identity;
  }

  /** Capacity as reported by the engine, if it does. */
  get capacity(): number {
    return this.#options.executor.maxSlots ?? this.#options.worker.capacity;
  }

  /** True once the worker takes no more leases in its shard. */
  get isLeaving(): boolean {
    return this.#target !== undefined;
  }

  /** True while the worker is in no shard. */
  get isUnregistered(): boolean {
    return this.#isUnregistered;
  }

  /**
   * Publishes the worker's state. Calls run one after the other, so that none writes to a shard that the worker has
   * left.
   */
  publish(): Promise<RegisterResult> {
    return this.#serialize(() => this.#register());
  }

  /** Requests a move. @param isPatient wait for running requests; otherwise move only if there are none. */
  move(shard: string, isPatient: boolean): void {
    if (shard !== this.#identity.shard) this.#target ??= { shard, isPatient };
  }

  /** Carries out a pending move if possible. Call between two inbox reads, so that none is in progress. */
  async moveIfReady(): Promise<void> {
    const { worker, engine, isBusy } = this.#options;
    if (engine.isStopping) return;
    if (this.#stayPending) return this.#cancelMove();
    if (this.#target === undefined) return;
    const { isPatient } = this.#target;
    if (!engine.acceptsLeases || (isBusy() && !isPatient)) return this.#cancelMove();
    if (isBusy() && this.#moveAnnounced) return;
    const result = await this.publish();
    this.#moveAnnounced = true;
    // The lease arrived first; the inbox delivers it.
    if (result === 'leased' || isBusy()) return isPatient ? undefined : this.#cancelMove();
    if (await isDrained(worker.store, this.#identity)) return this.#cancelMove();
    await this.#serialize(() => this.#moveShard());
  }

  async #cancelMove(): Promise<void> {
    this.#target = undefined;
    this.#moveAnnounced = false;
    this.#stayPending = true;
    await this.publish();
    this.#stayPending = false;
  }

  async #moveShard(): Promise<void> {
    const { worker, inbox, engine } = this.#options;
    const { store, log } = worker;
    if (this.#target === undefined || engine.isStopping) return;
    const previous = this.#identity;
    const moved = { ...previous, shard: this.#target.shard };
    this.#isUnregistered = true;
    try {
      this.#identity = moved;
      this.#target = undefined;
      this.#moveAnnounced = false;
      inbox.startOver();
      // If this fails, the janitor reaps the old registration, which has no leases.
      await unregisterWorker(store, previous);
      await this.#register();
      log.info({ from: previous.shard, to: moved.shard }, 'moved to another shard');
    } finally {
      // If it could not register, its next heartbeat detects that.
      this.#isUnregistered = false;
    }
  }

  async #register(): Promise<RegisterResult> {
    const { worker, engine, files, meters } = this.#options;
    const { store, loads, asset } = worker;
    const { card, acceptsLeases } = engine;
    meters.steps.setCapacity(this.capacity);
    // Only once loaded: requests must not be accepted for a model that cannot load. Every time: Redis may have lost it.
    if (acceptsLeases && card !== undefined) await Promise.all([publishModel(store, card, asset), loads.clear()]);
    // Read the state now: it may have changed during the await. While not open it gets no leases and keeps its
    // requests.
    const { state: engineState, loadMs, isStopping } = engine;
    // It may have unregistered meanwhile.
    if (isStopping) return 'registered';
    const state = acceptsLeases && (engineState === 'ready' || engineState === 'asleep') ? engineState : 'loading';
    const capacity = this.isLeaving ? 0 : this.capacity;
    return registerWorker(store, this.#identity, { state, capacity, info: files.info, loadMs });
  }

  #serialize<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
