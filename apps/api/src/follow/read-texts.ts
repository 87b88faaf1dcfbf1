import { type RequestStatus, textAfter } from '@darkroom/core';
import { readEvents } from '@darkroom/store';
import type { AskStore } from '../server/store-guard.ts';

/** Entries of the log at a time; a long one has been compacted to fewer. */
const limit = 256;

/** What stands by now of each output of a request of text, `''` where nothing does. One round trip, as a rule. */
export async function readTexts(
  askStore: AskStore,
  { id, outputCount }: Pick<RequestStatus, 'id' | 'outputCount'>,
): Promise<string[]> {
  const texts = Array.from({ length: outputCount }, () => '');
  for (let after: number | undefined = 0; after !== undefined;) {
    const from: number = after;
    const events = await askStore((store) => readEvents(store, id, { after: from, limit }));
    for (const event of events)
      if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
        texts[event.index] = textAfter(texts[event.index] ?? '', event);
    after = events.length < limit ? undefined : events.at(-1)?.sequence;
  }
  return texts;
}
