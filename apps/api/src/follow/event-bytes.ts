/** Bytes of events: most events hold them, others refer to Redis or to the byte store. */
import type { StoredEvent } from '@darkroom/core';
import { isReference, readOutputChunk, readPreview } from '@darkroom/store';
import { type WithStore, isStoreUnavailable } from '../server/store-guard.ts';

type PreviewEvent = Extract<StoredEvent, { type: 'preview' }>;
type OutputEvent = Extract<StoredEvent, { type: 'output' }>;

/** Loads the bytes of a preview that the event only refers to; drops them if they expired or cannot be read now. */
export async function withPreview(
  withStore: WithStore,
  id: string,
  { data: held, ...event }: PreviewEvent,
): Promise<PreviewEvent> {
  if (held === undefined || !isReference(held)) return { ...event, data: held };
  const data = await withStore((store) => readPreview(store, id, { data: held })).catch((error: unknown) => {
    // Previews are optional: the image does not depend on them.
    if (isStoreUnavailable(error)) return undefined;
    throw error;
  });
  return data === undefined ? event : { ...event, data };
}

/** Returns the chunk that an event announces; undefined if it has expired. */
export async function readChunk(withStore: WithStore, id: string, event: OutputEvent): Promise<Buffer | undefined> {
  const { data } = event;
  if (data === undefined || isReference(data)) return withStore((store) => readOutputChunk(store, id, event));
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
