/**
 * A worker's inbox: leased batches and cancels in the order they were decided. A stream that is read and not popped: what was on
 * its way when the connection broke is read again. Heartbeats cut off what the worker has.
 */
import type { RequestEnvelope, WorkerMove } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerCommand } from './call-workers.ts';
import type { WorkerIdentity } from './register-worker.ts';

export interface LeasedRequest {
  token: string;
  /** 1 for the first delivery. */
  attempt: number;
  /** Slots the lease claims on the worker; more than the envelope's when the worker is leased exclusively. */
  slots: number;
  /** From the lease to its deadline: a worker's clock may differ from that of Redis. */
  remainingMs: number;
  /** It ran before: there may be checkpoints and finished outputs. */
  isResumed: boolean;
  /** For so long its progress is read as it comes; absent where it was never. */
  followedMs?: number;
  envelope: RequestEnvelope;
}

/** An operator asks for it. `call`: and for an answer under that name. */
export interface OperatorMessage {
  type: WorkerCommand;
  call?: string;
}

export type InboxMessage =
  | { type: 'run'; requests: LeasedRequest[] }
  | { type: 'cancel'; id: string; token: string }
  | { type: 'drained' }
  /** Somebody reads its progress as it comes. */
  | { type: 'follow'; token: string; forMs: number }
  /** To another shard of its model. */
  | ({ type: 'move' } & Pick<WorkerMove, 'to' | 'isPatient'>)
  | OperatorMessage;

/** How much later than it should an answer may come, before the connection counts as broken. */
const silenceMs = 5000;
const beginning = '0-0';

export type WorkerInbox = ReturnType<typeof openInbox>;

/** `identity`: whose it is at each look, since a worker may go to another shard. */
export function openInbox(store: StoreConnection, identity: Pick<WorkerIdentity, 'model' | 'workerId'>) {
  const redis = store.duplicate();
  let lastRead = beginning;
  return {
    /** The messages that have come since the last call, or none after `timeoutS` without one. */
    async next(timeoutS: number): Promise<InboxMessage[]> {
      // Who only reads does not notice that the other side is gone, and the worker would go on taking leases by its
      // heartbeats, on another connection. A new connection asks again.
      const watchdog = setInterval(() => redis.disconnect(true), timeoutS * 1000 + silenceMs);
      const key = store.keysOf(identity.model).inbox(identity.workerId);
      const reading = redis.xread('BLOCK', timeoutS * 1000, 'STREAMS', key, lastRead);
      const entries = (await reading.finally(() => clearInterval(watchdog)))?.[0]?.[1] ?? [];
      lastRead = entries.at(-1)?.[0] ?? lastRead;
      return entries.map(([, [, message = '']]) => JSON.parse(message) as InboxMessage);
    },
    /** What to say in heartbeats: the last entry that was returned. */
    get lastRead(): string {
      return lastRead;
    },
    /** After a burial, or in another shard: what was in it is gone, and what comes may have lower ids, since Redis' clock may have been set back. */
    startOver(): void {
      lastRead = beginning;
    },
    /** Ends a waiting `next` too: it rejects. */
    close: (): void => redis.disconnect(),
  };
}
