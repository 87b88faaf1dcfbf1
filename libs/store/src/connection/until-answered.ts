/** Retries commands while Redis is unavailable or cannot serve. */
import { retry } from '@darkroom/core';
import type { StoreConnection } from './store-connection.ts';

/** Matches errors of Redis while it cannot serve, and of ioredis while it has no connection. */
const unavailablePattern =
  /^(?:BUSY |LOADING|OOM|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|Connection is closed|Command aborted|None of startup nodes|Cluster is ended)/;

/** Returns whether a command failed because Redis is unavailable, so that it may be sent again. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Error && unavailablePattern.test(error.message);
}

const pauseMs = 200;

/**
 * Repeats an idempotent call until Redis replies. A connection to one server waits by itself, but a Cluster without any
 * node, and a server that cannot write right now, fail at once.
 *
 * @throws the last error: if Redis is not unavailable, after `untilMs` (by `performance.now()`), or once the store is
 * closed.
 */
export async function untilAnswered<Result>(
  store: StoreConnection,
  { untilMs }: { untilMs: number },
  call: () => Promise<Result>,
): Promise<Result> {
  return retry(call, {
    pauseMs: (error) => (!isUnavailable(error) || store.isClosed || performance.now() >= untilMs ? undefined : pauseMs),
  });
}
