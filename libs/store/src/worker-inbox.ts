/** A worker's inbox: leased batches and cancels in the order they were decided. */
import type { RequestEnvelope } from '@darkroom/core';
import type { Delivery } from './lease-batch.ts';
import type { WorkerIdentity } from './register-worker.ts';
import type { StoreConnection } from './store-connection.ts';

export interface LeasedRequest extends Omit<Delivery, 'id'> {
  /** 1 for the first delivery. */
  attempt: number;
  /** Slots the lease claims on the worker; more than the envelope's when the worker is leased exclusively. */
  slots: number;
  /** It ran before: there may be checkpoints and finished outputs. */
  isResumed: boolean;
  envelope: RequestEnvelope;
}

export type InboxMessage =
  | { type: 'run'; requests: LeasedRequest[] }
  | { type: 'cancel'; id: string }
  | { type: 'drained' };

export interface WorkerInbox {
  /** The next message, or undefined after `timeoutS` without one. A batch popped by a worker that dies is requeued by its locks. */
  next(timeoutS: number): Promise<InboxMessage | undefined>;
  /** Ends a waiting `next` too: it rejects. */
  close(): void;
}

export interface OpenInboxOptions {
  /** How much later than it should an answer may come, before the connection counts as broken. */
  silenceMs?: number;
}

export function openInbox(
  store: StoreConnection,
  { model, workerId }: WorkerIdentity,
  { silenceMs = 5000 }: OpenInboxOptions = {},
): WorkerInbox {
  const redis = store.duplicate();
  const key = store.keysOf(model).inbox(workerId);
  return {
    async next(timeoutS) {
      // Who only reads does not notice that the other side is gone, and the worker would go on taking leases by its
      // heartbeats, on another connection. A new connection asks again.
      const watchdog = setInterval(() => redis.disconnect(true), timeoutS * 1000 + silenceMs);
      const popped = await redis.blpop(key, timeoutS).finally(() => clearInterval(watchdog));
      return popped === null ? undefined : (JSON.parse(popped[1]) as InboxMessage);
    },
    close: () => redis.disconnect(),
  };
}
