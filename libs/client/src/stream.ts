import { ClientError } from './client-error.ts';
import { joined } from './http.ts';
import type { Call } from './options.ts';
import { fetchPicture } from './pictures/pictures.ts';
import { type ChunkEvent, resumeEvents } from './resume-events.ts';
import type { ImageEvent, RequestEvent } from './stream-event.ts';
import { createTextReader } from './texts/texts.ts';

/** The chunks so far of each picture that is not whole. */
type OpenPictures = Map<number, Uint8Array[]>;

/** The events of a request after the event `after`, or all, with whole pictures and texts; see {@link resumeEvents}. */
export async function* streamRequest(
  call: Call,
  id: string,
  after: string | undefined,
): AsyncGenerator<RequestEvent, void> {
  const open: OpenPictures = new Map();
  const texts = createTextReader(call, id);
  const delivered = new Set<number>();
  let last = after ?? '0-0';
  for await (const event of resumeEvents(call, id, after)) {
    if (event.type === 'image') {
      const whole = await wholePicture(call, open, event);
      if (whole !== undefined) {
        delivered.add(event.index);
        yield whole;
      }
    } else if (event.type === 'delta' || event.type === 'snapshot' || event.type === 'reset')
      yield* texts.pieces(event);
    else if (event.type === 'text') yield* texts.end(event);
    else {
      if (event.type === 'succeeded') {
        const { request_id, timestamp, images = [] } = event;
        const isMissing = (index: number): boolean => !delivered.has(index) && (after === undefined || open.has(index));
        for (const image of images.filter(({ index }) => isMissing(index)))
          yield await fetchPicture(call, { type: 'image' as const, id: last, request_id, timestamp, ...image });
      }
      yield event;
    }
    last = event.id;
  }
}

/**
 * The picture with its last chunk; fetched, if a chunk is missing. Undefined while more are to come, and for a picture
 * that is not there (any more). Chunks of several pictures may come mixed, each picture's in order.
 */
async function wholePicture(call: Call, open: OpenPictures, sent: ChunkEvent): Promise<ImageEvent | undefined> {
  const { type, id, request_id, timestamp, index, url, seed, width, height, content_type, bytes } = sent;
  const event = { type, id, request_id, timestamp, index, url, seed, width, height, content_type, bytes };
  // A lost worker's picture comes again from its first chunk.
  const parts = (sent.chunk_index > 0 && open.get(index)) || [];
  parts.push(decoded(sent.b64));
  open.set(index, parts);
  if (sent.chunk_index < sent.total_chunks - 1) return undefined;
  const data = joined(parts);
  if (data.length === bytes) {
    open.delete(index);
    return { ...event, data };
  }
  try {
    return await fetchPicture(call, event);
  } catch (error) {
    // Another attempt makes it again (409), or the request ended without it (404): later events tell.
    if (error instanceof ClientError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

/** Empty for what is not base64, and for bytes that were gone. Browsers' `atob` gives one character per byte. */
function decoded(b64: string | null): Uint8Array {
  try {
    return Uint8Array.from(atob(b64 ?? ''), (character) => character.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
