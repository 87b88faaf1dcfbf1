import { isTerminalState, type RequestEvent, type TerminalState } from '@darkroom/core';
import { readEvents, readLogEnd } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { createWakeSignal, onAbort } from './wake-signal.ts';

/** `done`: nothing will follow. `draining`: this process stops, go on reading elsewhere. */
export type TailItem = RequestEvent | 'heartbeat' | 'draining' | 'done';

/** Whether nothing follows it. */
export function isEnd(event: RequestEvent): event is Extract<RequestEvent, { type: TerminalState }> {
  return isTerminalState(event.type);
}

export interface TailOptions {
  /** Sequence number of the last event seen; 0 for all. */
  after: number;
  /** Known to have ended: what the log holds is all there is. */
  isEnded: boolean;
  /** The reader has gone. */
  signal: AbortSignal;
  /** It shows each progress as it comes. */
  isOfProgress?: boolean;
}

export const heartbeatMs = 15_000;
/** How long a lost wake-up can go unnoticed. */
export const checkMs = 5000;
/** For how long a look into the log says that somebody follows. */
const followMs = 3 * checkMs;
/** Events read from the log at a time: what a slow reader holds in memory. */
const readLimit = 32;

/** Published events that are kept for a reader that is slow: they hold previews, and a process has many readers. */
const publishedLimit = 16;

function createReader({ after, isEnded, isOfProgress = false }: TailOptions) {
  return {
    from: after,
    last: after,
    isEnded,
    followMs: isOfProgress ? followMs : 0,
    isCheckDue: false,
    isHeartbeatDue: false,
    /** Something may have been missed: the log says what. True until it has been read once. */
    isBehind: true,
    published: [] as RequestEvent[],
    ...createWakeSignal(),
  };
}

type Reader = ReturnType<typeof createReader>;

/**
 * A request's events in order and without gaps, the rest of the log first and then as they come. The log is the truth
 * and published events are a shortcut: one that does not follow the last makes us read the log, and a slow tick
 * notices when none comes. Pulled: nothing is read ahead of the reader.
 */
export async function* tailEvents(
  context: ApiContext,
  id: string,
  options: TailOptions,
): AsyncGenerator<TailItem, void> {
  const reader = createReader(options);
  // Subscribed before the log is read the first time, so that nothing falls between the two.
  const subscribing = context.hub.subscribe(id, (event) => receive(reader, event));
  const stops = listen(context, reader, options.signal);
  try {
    await context.askStore(() => subscribing);
    while (!options.signal.aborted) {
      if (context.draining.aborted) return yield 'draining';
      if (reader.isHeartbeatDue) {
        reader.isHeartbeatDue = false;
        yield 'heartbeat';
      }
      const events = await nextEvents(context, id, reader);
      for (const event of events ?? []) {
        yield event;
        reader.last = event.sequence;
        if (isEnd(event)) return yield 'done';
      }
      if (events?.length === 0 && reader.isEnded) return yield 'done';
      if (events === undefined || events.length === 0) await reader.woken();
    }
  } finally {
    for (const stop of stops) stop();
    subscribing.then((leave) => leave()).catch(() => {});
  }
}

function receive(reader: Reader, event: RequestEvent): void {
  if (reader.published.length === publishedLimit) {
    reader.published.length = 0;
    reader.isBehind = true;
  } else if (!reader.isBehind) reader.published.push(event);
  reader.wake();
}

/** All that wakes a reader besides the events. */
function listen({ hub, every, draining }: ApiContext, reader: Reader, signal: AbortSignal): (() => void)[] {
  const wakeFor = (due: 'isCheckDue' | 'isHeartbeatDue' | 'isBehind') => (): void => {
    reader[due] = true;
    reader.wake();
  };
  return [
    hub.onReconnect(wakeFor('isBehind')),
    every(checkMs, wakeFor('isCheckDue')),
    every(heartbeatMs, wakeFor('isHeartbeatDue')),
    onAbort([draining, signal], reader.wake),
  ];
}

/** What follows `reader.last`; empty when there is nothing yet, undefined when that cannot be known right now. */
async function nextEvents(
  { askStore }: ApiContext,
  id: string,
  reader: Reader,
): Promise<readonly RequestEvent[] | undefined> {
  try {
    if (reader.isCheckDue) {
      // Sees what no published event told us, above all the end. Thousands of readers ask this again and again.
      const { last, isEnded } = await askStore((store) => readLogEnd(store, id));
      reader.isCheckDue = false;
      reader.isEnded = isEnded;
      // Who shows each progress says so by reading.
      if (isEnded || last !== reader.last || reader.followMs > 0) reader.isBehind = true;
    }
    for (let event = reader.published.shift(); event !== undefined; event = reader.published.shift()) {
      if (event.sequence === reader.last + 1) return [event];
      if (event.sequence > reader.last) reader.isBehind = true;
    }
    if (!reader.isBehind) return [];
    reader.isBehind = false;
    const events = await askStore((store) =>
      readEvents(store, id, { after: reader.last, limit: readLimit, followMs: reader.followMs }),
    );
    if (events.length === readLimit) reader.isBehind = true;
    return events.length === 0 && reader.isEnded ? await lastOfShorter(askStore, id, reader) : events;
  } catch (error) {
    if (!isStoreAway(error)) throw error;
    // The next tick tries again. Closing the stream would only send the reader to a 503.
    reader.isCheckDue = true;
    return undefined;
  }
}

/**
 * The end of a log that is over, for a reader who has none and has seen as much or more: a failover lost what it has seen, and the request went on from
 * before. Nothing for one who came for what is after the end.
 */
async function lastOfShorter(
  askStore: ApiContext['askStore'],
  id: string,
  reader: Reader,
): Promise<readonly RequestEvent[]> {
  const { last } = await askStore((store) => readLogEnd(store, id));
  const hasSeenAll = reader.last === reader.from && reader.last <= last;
  return hasSeenAll ? [] : askStore((store) => readEvents(store, id, { after: last - 1 }));
}
