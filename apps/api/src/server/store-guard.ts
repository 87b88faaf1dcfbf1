import { DarkroomError } from '@darkroom/core';
import { isUnavailable, type StoreConnection } from '@darkroom/store';

/** Runs a call on the store; throws `unavailable` when there is no Redis to answer it. */
export type AskStore = <Result>(call: (store: StoreConnection) => Promise<Result>) => Promise<Result>;

/**
 * The store's commands wait for their connection for as long as it takes, which suits workers. A client over HTTP is
 * better served by a quick 503, and nothing may be left in the connection's queue that runs after that answer.
 */
export function createStoreGuard(store: StoreConnection, waitMs: number): AskStore {
  const { redis } = store;
  let reconnecting: Promise<unknown> | undefined;
  const ready = async (): Promise<void> => {
    if (redis.status === 'ready') return;
    // One listener on the connection, however many requests wait for it.
    reconnecting ??= new Promise((resolve) => {
      redis.once('ready', resolve);
    }).finally(() => (reconnecting = undefined));
    await withinTime(reconnecting, waitMs);
  };
  return async (call) => {
    await ready();
    try {
      return await withinTime(call(store), waitMs);
    } catch (error) {
      if (isUnavailable(error)) throw storeUnavailable(error);
      throw error;
    }
  };
}

async function withinTime<Result>(work: Promise<Result>, waitMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(storeUnavailable()), waitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What clients are told of a Redis that does not answer. */
export function storeUnavailable(cause?: unknown): DarkroomError {
  const message = 'The queue cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', 'api.ask-store', message, cause);
}

export function isStoreAway(error: unknown): boolean {
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}
