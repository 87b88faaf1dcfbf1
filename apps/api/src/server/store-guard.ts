import { DarkroomError } from '@darkroom/core';
import { type AskBytes, bytesUnavailable, isUnavailable, type StoreConnection } from '@darkroom/store';

/**
 * Runs a call on the store; throws `unavailable` when there is no Redis to answer it. What the call does by `askBytes`, one thing at a
 * time, does not count against Redis: it has a time of its own, and throws what says that pictures cannot be reached.
 */
export type AskStore = <Result>(
  call: (store: StoreConnection, askBytes: AskBytes) => Promise<Result>,
) => Promise<Result>;

/** For each of the two, ms. */
export interface StoreWaits {
  redisMs: number;
  bytesMs: number;
}

/**
 * The store's commands wait for their connection for as long as it takes, which suits workers. A client over HTTP is
 * better served by a quick 503, and nothing may be left in the connection's queue that runs after that answer.
 */
export function createStoreGuard(store: StoreConnection, { redisMs, bytesMs }: StoreWaits): AskStore {
  const { redis } = store;
  let reconnecting: Promise<unknown> | undefined;
  const ready = async (): Promise<void> => {
    if (redis.status === 'ready') return;
    // One listener on the connection, however many requests wait for it.
    reconnecting ??= new Promise((resolve) => {
      redis.once('ready', resolve);
    }).finally(() => (reconnecting = undefined));
    await withinTime(() => reconnecting!, redisMs, storeUnavailable);
  };
  return async (call) => {
    await ready();
    try {
      return await withinTime(
        (uncounted) => call(store, (work) => uncounted(() => withinTime(work, bytesMs, bytesLate))),
        redisMs,
        storeUnavailable,
      );
    } catch (error) {
      if (isUnavailable(error)) throw storeUnavailable(error);
      throw error;
    }
  };
}

/** `uncounted` does what does not count: the time begins anew behind it. */
function withinTime<Result>(
  work: (uncounted: AskBytes) => Promise<Result>,
  waitMs: number,
  lateError: () => DarkroomError,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const count = (): void => {
      timer = setTimeout(() => reject(lateError()), waitMs);
    };
    const uncounted: AskBytes = (act) => {
      clearTimeout(timer);
      return act().finally(count);
    };
    count();
    work(uncounted)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject);
  });
}

function bytesLate(): DarkroomError {
  return bytesUnavailable('put', new Error('it took too long'));
}

/** What clients are told of a Redis that does not answer. */
export function storeUnavailable(cause?: unknown): DarkroomError {
  const message = 'The queue cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', 'api.ask-store', message, cause);
}

export function isStoreAway(error: unknown): boolean {
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}
