/** What to do while Redis is away, or there but unable to serve. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreConnection } from './store-connection.ts';

/** What Redis answers while it cannot serve, and ioredis while it has no connection. */
const unavailablePattern =
  /^(?:BUSY |LOADING|OOM|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|Connection is closed|Command aborted|None of startup nodes|Cluster is ended)/;

/** Whether a command failed for want of a Redis that can serve, so that it may be sent again. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Error && unavailablePattern.test(error.message);
}

const pauseMs = 200;

/**
 * Calls until there is an answer; for what may be done twice. A connection to one server waits by itself, but a Cluster
 * without any node, and a server that cannot write right now, refuse at once.
 *
 * @throws what the last call threw: when that says more than that Redis is away, after `untilMs` (by `performance.now()`), or when the store is closed.
 */
export async function untilAnswered<Result>(
  store: StoreConnection,
  { untilMs }: { untilMs: number },
  call: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isUnavailable(error) || store.isClosed || performance.now() >= untilMs) throw error;
    }
    await delay(pauseMs);
  }
}
