/**
 * What is leased to a worker and nothing there stands behind: its end was lost by a failover, or could never be stored. Until it
 * is given back it takes room, and its request waits for nobody.
 */
import { type Logger, PeriodicLoop } from '@darkroom/service';
import { type Delivery, listLeases, type StoreConnection, type WorkerIdentity } from '@darkroom/store';
import type { GiveBackReason } from './active-request.ts';
import type { WriteQueue } from './write-queue.ts';

export interface StrangeLeasesOptions {
  store: StoreConnection;
  identity: WorkerIdentity;
  writes: WriteQueue;
  /** Whether the worker has this delivery. */
  isKnown: (token: string) => boolean;
  heartbeatMs: number;
  log: Logger;
}

/** Heartbeats between two looks. */
const beatsPerLook = 10;
/** For how long a give-back is tried: Redis may be full. */
const patienceMs = 600_000;

export class StrangeLeases extends PeriodicLoop {
  readonly #options: StrangeLeasesOptions;
  /** Looks into the inbox that are over. */
  #receives = 0;
  /** Token → `#receives` when it was first seen. */
  #seen = new Map<string, number>();

  constructor(options: StrangeLeasesOptions) {
    const { heartbeatMs, log } = options;
    super({ name: 'leases', intervalMs: beatsPerLook * heartbeatMs, runOnce: () => this.checkOnce(), log });
    this.#options = options;
  }

  /** A look into the inbox is over. */
  received(): void {
    this.#receives += 1;
  }

  /** Gives back what is strange although the inbox was read since that was first seen. One round trip. */
  async checkOnce(): Promise<void> {
    const { store, identity, isKnown } = this.#options;
    const strange = (await listLeases(store, identity)).filter(({ token }) => !isKnown(token));
    const seen = this.#seen;
    this.#seen = new Map(strange.map(({ token }) => [token, seen.get(token) ?? this.#receives]));
    // The look that was under way then may have begun before the lease.
    const lost = strange.filter(({ token }) => this.#receives >= this.#seen.get(token)! + 2);
    await Promise.all(lost.map((delivery) => this.giveBack(delivery)));
  }

  /** Its request, if it still runs under this delivery, goes to somebody else, or ends when it was canceled. */
  async giveBack(delivery: Delivery, reason: GiveBackReason = 'worker_stopped'): Promise<void> {
    const { writes, log } = this.#options;
    try {
      const outcome = await writes.push({ type: 'give-back', delivery, reason }, performance.now() + patienceMs);
      log.info({ request_id: delivery.id, outcome }, 'gave back a lease that nothing stood behind');
    } catch (error) {
      log.error({ request_id: delivery.id, err: error }, 'could not give back a lease');
    }
  }
}
