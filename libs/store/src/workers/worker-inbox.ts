/**
 * A worker's inbox: leases and cancels in the order they were decided. A stream that is read, not popped: messages that
 * were in flight when the connection broke are read again. Heartbeats delete the entries that the worker has read.
 */
import type { RequestEnvelope } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { WorkerName } from './register-worker.ts';
import type { CommandMessage } from './send-command.ts';

export interface LeasedRequest {
  token: string;
  /** Counted from 1. */
  attempt: number;
  /** Slots the lease claims on the worker; more than the envelope's when the worker is leased exclusively. */
  slots: number;
  /** ms from the lease to the deadline: the worker's clock may differ from that of Redis. */
  remainingMs: number;
  /** The request ran before: there may be checkpoints and finished outputs. */
  isResumed: boolean;
  /** ms for which a client follows the live progress; absent if none ever did. */
  followedMs?: number;
  envelope: RequestEnvelope;
}

export type InboxMessage =
  | { type: 'run'; requests: LeasedRequest[] }
  | { type: 'cancel'; id: string; token: string }
  | { type: 'drained' }
  /** A client follows the live progress. */
  | { type: 'follow'; token: string; forMs: number }
  | CommandMessage;

/** Max delay of a reply beyond the blocking time, ms; then the connection counts as broken. */
const silenceMs = 5000;
const beginning = '0-0';

export type WorkerInbox = ReturnType<typeof openInbox>;

/** Opens the inbox. `getWorker` is called at each read, because the worker may move to another shard. */
export function openInbox(store: StoreConnection, getWorker: () => WorkerName) {
  const redis = store.duplicate();
  let lastRead = beginning;
  return {
    /** Resolves with the messages since the last call; with none after `timeoutS` without a message. */
    async next(timeoutS: number): Promise<InboxMessage[]> {
      // A blocked read does not notice a dead connection, while heartbeats on another connection would keep the leases
      // alive. Reconnecting repeats the read.
      const watchdog = setInterval(() => redis.disconnect(true), timeoutS * 1000 + silenceMs);
      const { shard, workerId } = getWorker();
      const key = store.keysOf(shard).inbox(workerId);
      const reading = redis.xread('BLOCK', timeoutS * 1000, 'STREAMS', key, lastRead);
      const entries = (await reading.finally(() => clearInterval(watchdog)))?.[0]?.[1] ?? [];
      lastRead = entries.at(-1)?.[0] ?? lastRead;
      return entries.map(([, [, message = '']]) => JSON.parse(message) as InboxMessage);
    },
    /** The last entry that was returned, for heartbeats. */
    get lastRead(): string {
      return lastRead;
    },
    /**
     * Reads from the beginning: after the worker was reaped or moved. The new stream may have lower ids, as Redis'
     * clock may have been set back.
     */
    startOver(): void {
      lastRead = beginning;
    },
    /** Closes the connection; a pending `next` rejects. */
    close: (): void => redis.disconnect(),
  };
}
