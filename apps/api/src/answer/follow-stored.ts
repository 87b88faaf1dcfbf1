import { type StoredEvent, WakeSignal } from '@darkroom/core';
import type { ApiContext } from '../context/context.ts';
import { checkMs, EventTail, isEnd, onAbort } from '../follow/tail-events.ts';
import type { ApiError } from '../http/api-error.ts';
import { drainMs } from '../server/api-server.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';
import { endedWithoutResult, endUnknown, serverStopping } from './stored-request-error.ts';
import type { ClientWatch } from './watch-client.ts';

/** Added to a request's timeout: time for the janitor to expire it. */
const marginMs = 15_000;
/** Time that a wait continues after SIGTERM; the rest of the drain time is for sending the error. */
export const drainGraceMs = drainMs - 1000;

/**
 * Yields the items of a request's events and heartbeats until it succeeds. Retries while Redis is unavailable, calling
 * `itemsOf` again for the same event, and continues during the drain for `drainGraceMs`. Throws an error of
 * `stored-request-error.ts` when the request ends otherwise or the wait times out.
 */
export async function* followStored<Item>(
  context: ApiContext,
  id: string,
  { hasKey, gone, timeoutMs }: ClientWatch,
  itemsOf: (event: StoredEvent) => Iterable<Item> | Promise<Iterable<Item>> | AsyncIterable<Item>,
): AsyncGenerator<Item | 'heartbeat', void> {
  const waitLimit = startWaitLimit(context, { id, hasKey, timeoutMs });
  const limitedContext = { ...context, draining: waitLimit.over };
  let after = 0;
  try {
    while (!gone.aborted && !waitLimit.over.aborted) {
      const tail = new EventTail(limitedContext, id, { after, isEnded: false, signal: gone });
      try {
        for (let next = await tail.next(); next !== undefined && next !== 'draining'; next = await tail.next()) {
          // The log ended without a terminal event: the results have expired.
          if (next === 'done') throw endedWithoutResult(id, 'succeeded', undefined);
          if (next === 'heartbeat') yield next;
          else
            for (const event of next) {
              yield* await itemsOf(event);
              after = event.sequence;
              if (event.type === 'succeeded') return;
              if (isEnd(event)) throw endedWithoutResult(id, event.type, event.error);
            }
        }
      } catch (error) {
        if (!isStoreUnavailable(error)) throw error;
        tail.close();
        yield 'heartbeat';
        await waitForRetry(limitedContext, gone);
      } finally {
        tail.close();
      }
    }
    throw waitLimit.error();
  } finally {
    waitLimit.stop();
  }
}

/** Aborts the wait some time after the drain begins, and when the request must have ended long ago. */
function startWaitLimit(
  { every, draining }: ApiContext,
  { id, hasKey, timeoutMs }: { id: string } & Pick<ClientWatch, 'hasKey' | 'timeoutMs'>,
) {
  const over = new AbortController();
  let error = (): ApiError => endUnknown(id);
  const stops = [every(timeoutMs + marginMs, () => over.abort())];
  const onDraining = (): void => {
    error = () => serverStopping(id, hasKey);
    stops.push(every(drainGraceMs, () => over.abort()));
  };
  stops.push(onAbort([draining], onDraining));
  return { over: over.signal, error: () => error(), stop: () => stops.forEach((stop) => stop()) };
}

/** Waits while Redis is unavailable: until it reconnects or the next check is due. */
async function waitForRetry({ every, hub, draining }: ApiContext, signal: AbortSignal): Promise<void> {
  const due = new WakeSignal();
  const wake = (): void => due.wake();
  const stops = [every(checkMs, wake), hub.onReconnect(wake), onAbort([draining, signal], wake)];
  await due.wait();
  stops.forEach((stop) => stop());
}
