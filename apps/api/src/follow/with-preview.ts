import type { RequestEvent } from '@darkroom/core';
import { readPreview } from '@darkroom/store';
import { type AskStore, isStoreAway } from '../server/store-guard.ts';

type PreviewEvent = Extract<RequestEvent, { type: 'preview' }>;

/** With the bytes where the event says only where they are; without any when they are gone, or cannot be had now. */
export async function withPreview(
  askStore: AskStore,
  id: string,
  { data: held, ...event }: PreviewEvent,
): Promise<PreviewEvent> {
  if (held === undefined) return event;
  const data = await askStore((store) => readPreview(store, id, { data: held })).catch((error: unknown) => {
    // The picture comes all the same.
    if (isStoreAway(error)) return undefined;
    throw error;
  });
  return data === undefined ? event : { ...event, data };
}
