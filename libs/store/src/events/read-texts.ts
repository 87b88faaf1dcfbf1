import { type StoredEvent, textAfter, type StoredTextEvent } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { readEvents } from './read-events.ts';

/** Entries of the log per page; long logs are compacted to fewer. */
const limit = 256;

/** Returns the current text of each output of a request, `''` for an output without text. Usually one round trip. */
export async function readTexts(store: StoreConnection, id: string, outputs: number): Promise<string[]> {
  const texts = Array.from({ length: outputs }, () => '');
  for (const event of await readTextEvents(store, id)) texts[event.index] = textAfter(texts[event.index] ?? '', event);
  return texts;
}

/** Returns all text events of a request, in order. Usually one round trip. */
export async function readTextEvents(store: StoreConnection, id: string): Promise<StoredTextEvent[]> {
  const textEvents: StoredTextEvent[] = [];
  let events: StoredEvent[] = [];
  do {
    events = await readEvents(store, id, { after: events.at(-1)?.sequence ?? 0, limit });
    for (const event of events)
      if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset') textEvents.push(event);
  } while (events.length === limit);
  return textEvents;
}
