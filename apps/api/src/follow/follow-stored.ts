import type { RequestEvent } from '@darkroom/core';
import type { ApiContext } from '../context.ts';
import { checkMs, isEnd, tailEvents } from './tail-events.ts';
import { createWakeSignal, onAbort } from './wake-signal.ts';
import type { ApiError } from '../http/api-error.ts';
import { drainMs } from '../server/api-server.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { endedWithoutResult, endUnknown, serverStopping } from './stored-request-error.ts';
import type { ClientWatch } from './watch-client.ts';

/** Longer than a request's own time, for the janitor to notice that it is over. */
const marginMs = 15_000;
/** How long a wait goes on when this process is told to stop: the rest is for saying that nothing comes. */
export const drainGraceMs = drainMs - 1000;

/**
 * What the events of a request say (`itemsOf`, asked again when Redis goes away meanwhile), up to its success. Goes on over a Redis that is away, and over this process being
 * told to stop for as long as it may. Throws (`stored-request-error.ts`) when the request ends in any other way, and
 * when nobody can wait for its end any longer.
 */
export async function* followStored<Item>(
  context: ApiContext,
  id: string,
  { hasKey, gone, timeoutMs }: ClientWatch,
  itemsOf: (event: RequestEvent) => AsyncIterable<Item>,
): AsyncGenerator<Item | 'heartbeat', void> {
  const patience = startPatience(context, { id, hasKey, timeoutMs });
  const patient = { ...context, draining: patience.over };
  let after = 0;
  try {
    while (!gone.aborted && !patience.over.aborted) {
      try {
        for await (const item of tailEvents(patient, id, { after, isEnded: false, signal: gone })) {
          if (item === 'draining') break;
          // The log is over without an end: so is the time of the results.
          if (item === 'done') throw endedWithoutResult(id, 'succeeded', undefined);
          if (item === 'heartbeat') yield item;
          else {
            yield* itemsOf(item);
            after = item.sequence;
            if (item.type === 'succeeded') return;
            if (isEnd(item)) throw endedWithoutResult(id, item.type, item.error);
          }
        }
      } catch (error) {
        if (!isStoreAway(error)) throw error;
        yield 'heartbeat';
        await nextTry(patient, gone);
      }
    }
    throw patience.error();
  } finally {
    patience.stop();
  }
}

/** Ends the wait some time after this process is told to stop, and when the request must have ended long ago. */
function startPatience(
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

/** Redis is away: waits for the next moment at which it may be back. */
async function nextTry({ every, hub, draining }: ApiContext, signal: AbortSignal): Promise<void> {
  const { wake, woken } = createWakeSignal();
  const stops = [every(checkMs, wake), hub.onReconnect(wake), onAbort([draining, signal], wake)];
  await woken();
  stops.forEach((stop) => stop());
}
