import { type RequestEvent, textAfter } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readEvents } from './read-events.ts';

/** Entries of the log at a time; a long one has been compacted to fewer. */
const limit = 256;

/** What stands by now of each output of a request of text, `''` where nothing does. One round trip, as a rule. */
export async function readTexts(store: StoreConnection, id: string, outputs: number): Promise<string[]> {
  const texts = Array.from({ length: outputs }, () => '');
  let events: RequestEvent[] = [];
  do {
    events = await readEvents(store, id, { after: events.at(-1)?.sequence ?? 0, limit });
    for (const event of events)
      if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
        texts[event.index] = textAfter(texts[event.index] ?? '', event);
  } while (events.length === limit);
  return texts;
}
