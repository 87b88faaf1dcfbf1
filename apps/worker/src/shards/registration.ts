/** How a worker is known to the system: in which shard of its model, with how much room, and whether it takes leases there. */
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
import type { HotSwap } from '../files/hot-swap.ts';
import type { EngineMeters } from '../meters/engine-meters.ts';
import type { WorkerOptions } from '../worker-options.ts';

type Told = 'registered' | 'leased';

export interface RegistrationOptions {
  /** Read anew each time: another model may lie there by now. */
  worker: Pick<WorkerOptions, 'store' | 'loads' | 'asset' | 'capacity' | 'log'>;
  /** Its `model` is the shard that the worker is in, and changes with it. */
  identity: WorkerIdentity;
  engine: Pick<EngineLife, 'card' | 'isOpen' | 'isStopping' | 'loadMs' | 'state'>;
  executor: Pick<Executor, 'maxSlots'>;
  swap: Pick<HotSwap, 'info'>;
  meters: Pick<EngineMeters, 'steps'>;
  inbox: Pick<WorkerInbox, 'startOver'>;
  isBusy: () => boolean;
}

/**
 * A worker that goes to another shard says that it has no room, ends what it has, is gone there, and registers here. At each moment it
 * takes leases in one shard at most: whatever becomes of it on the way, it knows of every lease that it has.
 */
export class Registration {
  readonly #options: RegistrationOptions;
  /** Where it is to go. */
  #to: { shard: string; isPatient: boolean } | undefined;
  #hasSaidSo = false;
  /** It has room again, and could not say so yet. */
  #staysUnsaid = false;
  #isBetween = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  /** As the engine found it, if it did. */
  get capacity(): number {
    return this.#options.executor.maxSlots ?? this.#options.worker.capacity;
  }

  /** It takes no more leases where it is. */
  get isLeaving(): boolean {
    return this.#to !== undefined;
  }

  /** It is in no shard. */
  get isBetween(): boolean {
    return this.#isBetween;
  }

  /** Says how the worker is; one after the other, so that nothing is said in a shard that it has left. */
  say(): Promise<Told> {
    return this.#inTurn(() => this.#say());
  }

  /** It is to go to another shard. @param isPatient when it has ended what it has; else only if it has nothing. */
  move(shard: string, isPatient: boolean): void {
    if (shard !== this.#options.identity.model) this.#to ??= { shard, isPatient };
  }

  /** Goes, if it is to and can. To be called between two looks into the inbox, so that none is under way. */
  async lookOnce(): Promise<void> {
    const { worker, identity, engine, isBusy } = this.#options;
    if (engine.isStopping) return;
    if (this.#staysUnsaid) return this.#stay();
    if (this.#to === undefined) return;
    const { isPatient } = this.#to;
    if (!engine.isOpen || (isBusy() && !isPatient)) return this.#stay();
    if (isBusy() && this.#hasSaidSo) return;
    const told = await this.say();
    this.#hasSaidSo = true;
    // The inbox tells of a lease that was faster.
    if (told === 'leased' || isBusy()) return isPatient ? undefined : this.#stay();
    if (await isDrained(worker.store, identity)) return this.#stay();
    await this.#inTurn(() => this.#go());
  }

  async #stay(): Promise<void> {
    this.#to = undefined;
    this.#hasSaidSo = false;
    this.#staysUnsaid = true;
    await this.say();
    this.#staysUnsaid = false;
  }

  async #go(): Promise<void> {
    const { worker, identity, inbox, engine } = this.#options;
    const { store, log } = worker;
    if (this.#to === undefined || engine.isStopping) return;
    const left = { ...identity };
    this.#isBetween = true;
    try {
      identity.model = this.#to.shard;
      this.#to = undefined;
      this.#hasSaidSo = false;
      inbox.startOver();
      // Where that is not heard, it is buried there, with no lease.
      await unregisterWorker(store, left);
      await this.#say();
      log.info({ from: left.model, to: identity.model }, 'went to another shard');
    } finally {
      // Where it could not register, its next heartbeat finds that out.
      this.#isBetween = false;
    }
  }

  async #say(): Promise<Told> {
    const { worker, identity, engine, swap, meters } = this.#options;
    const { store, loads, asset } = worker;
    const { card, isOpen } = engine;
    meters.steps.setCapacity(this.capacity);
    // Not before it has loaded: what cannot be loaded must not be asked for. Each time, since Redis may have lost it.
    if (isOpen && card !== undefined) await Promise.all([publishModel(store, card, asset), loads.clear()]);
    // As it is by now: what was said meanwhile is not to be taken back. Not open: it gets no leases, and keeps what it has.
    const { state: own, loadMs, isStopping } = engine;
    // It may be gone by now.
    if (isStopping) return 'registered';
    const state = isOpen && (own === 'ready' || own === 'asleep') ? own : 'loading';
    const capacity = this.isLeaving ? 0 : this.capacity;
    return registerWorker(store, identity, { state, capacity, info: swap.info, loadMs });
  }

  #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
