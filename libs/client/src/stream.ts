import { ClientError } from './client-error.ts';
import { concatenate } from './http.ts';
import type { Call } from './options.ts';
import { fetchImage } from './images.ts';
import type { ImageChunkEvent } from './api-types.ts';
import { resumeEvents } from './resume-events.ts';
import type { ImageEvent, RequestEvent } from './stream-event.ts';
import { createTextReader } from './texts.ts';

/** The received chunks of each incomplete image. */
type OpenImages = Map<number, Uint8Array[]>;

/**
 * Yields the events of a request after the event `after`, or all, with complete images and texts; see {@link
 * resumeEvents}.
 */
export async function* streamRequest(
  call: Call,
  id: string,
  after: string | undefined,
): AsyncGenerator<RequestEvent, void> {
  const open: OpenImages = new Map();
  const texts = createTextReader(call, id);
  const delivered = new Set<number>();
  let last = after ?? '0-0';
  for await (const event of resumeEvents(call, id, after)) {
    if (event.type === 'image') {
      const image = await completeImage(call, open, event);
      if (image !== undefined) {
        delivered.add(event.index);
        yield image;
      }
    } else if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
      yield* texts.chunks(event);
    else if (event.type === 'text') yield* texts.end(event);
    else {
      if (event.type === 'succeeded') {
        const { request_id, timestamp, images = [] } = event;
        const isMissing = (index: number): boolean => !delivered.has(index) && (after === undefined || open.has(index));
        for (const image of images.filter(({ index }) => isMissing(index)))
          yield await fetchImage(call, { type: 'image' as const, id: last, request_id, timestamp, ...image });
      }
      yield event;
    }
    last = event.id;
  }
}

/**
 * Returns the image with its last chunk; fetches it if a chunk is missing. Returns undefined before the last chunk,
 * and for an image that does not exist (any more). Chunks of several images may be interleaved, each image's in
 * order.
 */
async function completeImage(call: Call, open: OpenImages, sent: ImageChunkEvent): Promise<ImageEvent | undefined> {
  const { chunk_id: _id, chunk_index, total_chunks, is_chunked: _isChunked, is_final: _isFinal, b64, ...event } = sent;
  const { index, bytes } = event;
  // A lost worker's image is sent again from its first chunk.
  const parts = (chunk_index > 0 && open.get(index)) || [];
  parts.push(decodeBase64(b64));
  open.set(index, parts);
  if (chunk_index < total_chunks - 1) return undefined;
  const data = concatenate(parts);
  if (data.length === bytes) {
    open.delete(index);
    return { ...event, data };
  }
  try {
    return await fetchImage(call, event);
  } catch (error) {
    // Another attempt makes it again (409), or the request ended without it (404): later events show which.
    if (error instanceof ClientError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

/** Returns an empty array for text that is not base64. `atob` returns one character per byte. */
function decodeBase64(b64: string): Uint8Array {
  try {
    return Uint8Array.from(atob(b64), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
