import { isTerminalState, type RequestEvent, type TerminalState } from '@darkroom/core';
import { readEvents, readRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { createLiveEvents, type LiveEvents } from './live-events.ts';
import { onAbort } from './wake-signal.ts';

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
}

export const heartbeatMs = 15_000;
/** How long a lost wake-up can go unnoticed. */
export const checkMs = 5000;
/** Events read from the log at a time: what a slow reader holds in memory. */
const readLimit = 32;

interface Reader {
  last: number;
  isEnded: boolean;
  isCheckDue: boolean;
  isHeartbeatDue: boolean;
  live: LiveEvents;
}

/**
 * A request's events in order and without gaps, the rest of the log first and then as they come. The log is the truth
 * and published events are a shortcut: one that does not follow the last makes us read the log, and a slow tick
 * notices when none comes. Pulled: nothing is read ahead of the reader.
 */
export async function* tailEvents(
  deps: ApiContext,
  id: string,
  { after, isEnded, signal }: TailOptions,
): AsyncGenerator<TailItem, void> {
  const reader: Reader = { last: after, isEnded, isCheckDue: false, isHeartbeatDue: false, live: createLiveEvents() };
  // Subscribed before the log is read the first time, so that nothing falls between the two.
  const subscribing = deps.hub.subscribe(id, reader.live.add);
  const stops = [...listen(deps, reader, signal), () => void subscribing.then((leave) => leave()).catch(() => {})];
  try {
    await deps.askStore(() => subscribing);
    while (!signal.aborted) {
      if (deps.draining.aborted) return yield 'draining';
      if (reader.isHeartbeatDue) {
        reader.isHeartbeatDue = false;
        yield 'heartbeat';
      }
      const events = await nextEvents(deps, id, reader);
      for (const event of events ?? []) {
        yield event;
        reader.last = event.sequence;
        if (isEnd(event)) return yield 'done';
      }
      if (events?.length === 0 && reader.isEnded) return yield 'done';
      if (events === undefined || events.length === 0) await reader.live.changed();
    }
  } finally {
    for (const stop of stops) stop();
  }
}

/** All that wakes a reader besides the events. */
function listen({ hub, every, draining }: ApiContext, reader: Reader, signal: AbortSignal): (() => void)[] {
  const { live } = reader;
  const wakeFor = (due: 'isCheckDue' | 'isHeartbeatDue') => (): void => {
    reader[due] = true;
    live.wake();
  };
  return [
    hub.onReconnect(live.markBehind),
    every(checkMs, wakeFor('isCheckDue')),
    every(heartbeatMs, wakeFor('isHeartbeatDue')),
    onAbort([draining, signal], live.wake),
  ];
}

/** What follows `reader.last`; empty when there is nothing yet, undefined when that cannot be known right now. */
async function nextEvents(deps: ApiContext, id: string, reader: Reader): Promise<readonly RequestEvent[] | undefined> {
  const { live } = reader;
  try {
    if (reader.isCheckDue) await checkEnd(deps, id, reader);
    for (let event = live.next(); event !== undefined; event = live.next()) {
      if (event.sequence === reader.last + 1) return [event];
      if (event.sequence > reader.last) live.markBehind();
    }
    if (!live.takeBehind()) return [];
    const events = await deps.askStore((store) => readEvents(store, id, { after: reader.last, limit: readLimit }));
    if (events.length === readLimit) live.markBehind();
    return events;
  } catch (error) {
    if (!isStoreAway(error)) throw error;
    // The next tick tries again. Closing the stream would only send the reader to a 503.
    reader.isCheckDue = true;
    return undefined;
  }
}

/** Sees what no published event told us, above all the end. */
async function checkEnd({ askStore }: ApiContext, id: string, reader: Reader): Promise<void> {
  const result = await askStore((store) => readRequest(store, id));
  reader.isCheckDue = false;
  reader.isEnded = result.status !== 'found' || isTerminalState(result.request.state);
  reader.live.markBehind();
}
