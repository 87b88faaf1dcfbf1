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
  const reconnected = (): Promise<unknown> => {
    // One listener on the connection for all waiting requests.
    reconnecting ??= new Promise((resolve) => {
      redis.once('ready', resolve);
    }).finally(() => (reconnecting = undefined));
    return withinTime(reconnecting, redisMs, storeUnavailable);
  };
  return async function withStore(call) {
    if (redis.status !== 'ready') await reconnected();
    let timer: NodeJS.Timeout | undefined;
    let expire!: () => void;
    const expired = new Promise<never>((_resolve, reject) => {
      expire = () => reject(storeUnavailable());
    });
    const callBytes: CallBytes = async (work) => {
      clearTimeout(timer);
      try {
        return await withinTime(work(), bytesMs, bytesTimedOut);
      } finally {
        timer = setTimeout(expire, redisMs);
      }
    };
    timer = setTimeout(expire, redisMs);
    try {
      return await Promise.race([call(store, callBytes), expired]);
    } catch (error) {
      throw isUnavailable(error) ? storeUnavailable(error) : error;
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Rejects with an error if work takes too long. */
async function withinTime<Result>(
  work: Promise<Result>,
  waitMs: number,
  timeoutError: () => DarkroomError,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(timeoutError()), waitMs);
  });
  try {
    return await Promise.race([work, expired]);
  } finally {
    clearTimeout(timer);
  }
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
