import { DarkroomError } from '@darkroom/core';
import { type CallBytes, bytesUnavailable, isUnavailable, type StoreConnection } from '@darkroom/store';

/**
 * Runs a call on the store; throws `unavailable` if Redis does not answer in time. Work that the call does through
 * `callBytes`, one at a time, has its own timeout and error, for the image store.
 */
export type WithStore = <Result>(
  call: (store: StoreConnection, callBytes: CallBytes) => Promise<Result>,
) => Promise<Result>;

/** Timeouts of Redis and of the image store. */
export interface StoreWaits {
  redisMs: number;
  bytesMs: number;
}

/**
 * Creates the API's guard of store calls. Store commands wait for their connection without limit, which suits workers;
 * HTTP clients need a quick 503, and no command may run from the connection's queue after that answer.
 */
export function createStoreGuard(store: StoreConnection, { redisMs, bytesMs }: StoreWaits): WithStore {
  const { redis } = store;
  let reconnecting: Promise<unknown> | undefined;
  const ready = async (): Promise<void> => {
    if (redis.status === 'ready') return;
    // One listener on the connection for all waiting requests.
    reconnecting ??= new Promise((resolve) => {
      redis.once('ready', resolve);
    }).finally(() => (reconnecting = undefined));
    await withinTime(() => reconnecting!, redisMs, storeUnavailable);
  };
  return async (call) => {
    await ready();
    try {
      return await withinTime(
        (uncounted) => call(store, (work) => uncounted(() => withinTime(work, bytesMs, bytesTimedOut))),
        redisMs,
        storeUnavailable,
      );
    } catch (error) {
      if (isUnavailable(error)) throw storeUnavailable(error);
      throw error;
    }
  };
}

/** Runs work with a timeout. Time in `uncounted` does not count; the timeout restarts after it. */
function withinTime<Result>(
  work: (uncounted: CallBytes) => Promise<Result>,
  waitMs: number,
  timeoutError: () => DarkroomError,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const count = (): void => {
      timer = setTimeout(() => reject(timeoutError()), waitMs);
    };
    const uncounted: CallBytes = (act) => {
      clearTimeout(timer);
      return act().finally(count);
    };
    count();
    work(uncounted)
      .finally(() => clearTimeout(timer))
      .then(resolve, reject);
  });
}

function bytesTimedOut(): DarkroomError {
  return bytesUnavailable('put', new Error('timed out'));
}

/** Returns the error for a Redis that does not answer. */
export function storeUnavailable(cause?: unknown): DarkroomError {
  const message = 'The queue cannot be reached right now, try again later.';
  return new DarkroomError('unavailable', 'api.ask-store', message, cause);
}

export function isStoreUnavailable(error: unknown): boolean {
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}
