import { type RequestEvent, textAfter, type TextEvent } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readEvents } from './read-events.ts';

/** Entries of the log at a time; a long one has been compacted to fewer. */
const limit = 256;

/** What stands by now of each output of a request of text, `''` where nothing does. One round trip, as a rule. */
export async function readTexts(store: StoreConnection, id: string, outputs: number): Promise<string[]> {
  const texts = Array.from({ length: outputs }, () => '');
  for (const event of await readTextEvents(store, id)) texts[event.index] = textAfter(texts[event.index] ?? '', event);
  return texts;
}

/** What was said of all texts of a request, in order. One round trip, as a rule. */
export async function readTextEvents(store: StoreConnection, id: string): Promise<TextEvent[]> {
  const said: TextEvent[] = [];
  let events: RequestEvent[] = [];
  do {
    events = await readEvents(store, id, { after: events.at(-1)?.sequence ?? 0, limit });
    for (const event of events)
      if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset') said.push(event);
  } while (events.length === limit);
  return said;
}
