/**
 * Orphaned leases: present in Redis, unknown to this worker, because their end was lost in a failover or could never be
 * stored. They occupy slots, and their requests make no progress, until they are requeued.
 */
import type { Failure } from '@darkroom/core';
import { type Logger, PeriodicLoop } from '@darkroom/service';
import { type Delivery, listLeases, type StoreConnection, type WorkerIdentity } from '@darkroom/store';
import type { WriteQueue } from './write-queue.ts';

export interface OrphanedLeasesOptions {
  store: StoreConnection;
  getIdentity: () => WorkerIdentity;
  writes: WriteQueue;
  /** Returns true if the worker has this delivery. */
  isKnown: (token: string) => boolean;
  heartbeatMs: number;
  log: Logger;
}

/** Heartbeats between two checks. */
const heartbeatsPerCheck = 10;
/** Time for which a requeue is retried: Redis may be full. */
const requeueTimeoutMs = 600_000;

export class OrphanedLeases extends PeriodicLoop {
  readonly #options: OrphanedLeasesOptions;
  /** Number of completed inbox reads. */
  #receives = 0;
  /** Token → `#receives` when the orphan was first seen. */
  #seen = new Map<string, number>();

  constructor(options: OrphanedLeasesOptions) {
    const { heartbeatMs, log } = options;
    super({ name: 'leases', intervalMs: heartbeatsPerCheck * heartbeatMs, runOnce: () => this.checkOnce(), log });
    this.#options = options;
  }

  /** Counts a completed inbox read. */
  received(): void {
    this.#receives += 1;
  }

  /** Requeues leases that are still unknown after two more inbox reads. One round trip. */
  async checkOnce(): Promise<void> {
    const { store, getIdentity, isKnown } = this.#options;
    const identity = getIdentity();
    const orphans = (await listLeases(store, identity)).filter(({ token }) => !isKnown(token));
    const found = orphans.map((delivery) => {
      return { delivery, seenAt: this.#seen.get(delivery.token) ?? this.#receives };
    });
    this.#seen = new Map(found.map(({ delivery, seenAt }) => [delivery.token, seenAt]));
    // The read in progress at that time may have begun before the lease.
    const lost = found.filter(({ seenAt }) => this.#receives >= seenAt + 2);
    await Promise.all(lost.map(({ delivery }) => this.requeue(delivery, { identity })));
  }

  /**
   * Requeues the request if this delivery still runs it, or ends it if it was canceled. `identity`: the worker that has
   * the lease; by default the worker in its current shard.
   */
  async requeue(
    delivery: Delivery,
    { failure, identity }: { failure?: Failure; identity?: WorkerIdentity } = {},
  ): Promise<void> {
    const { writes, log } = this.#options;
    const reason = failure === undefined ? 'worker_stopped' : 'engine_failed';
    try {
      const outcome = await writes.push(
        { type: 'give-back', delivery, reason, failure },
        performance.now() + requeueTimeoutMs,
        identity,
      );
      log.info({ request_id: delivery.id, outcome }, 'requeued an orphaned lease');
    } catch (error) {
      log.error({ request_id: delivery.id, err: error }, 'could not requeue an orphaned lease');
    }
  }
}
