import type { Picture } from './answers.ts';
import { ClientError } from './client-error.ts';
import type { Call } from './options.ts';
import { createPictureAssembler, fetchPicture, type PictureAssembler } from './pictures.ts';
import { resumeEvents } from './resume-events.ts';
import type { ChunkEvent, ImageEvent, RequestEvent, SucceededEvent } from './stream-event.ts';

/** The events of a request after the event `after`, or all, with whole pictures; see {@link resumeEvents}. */
export async function* streamRequest(
  call: Call,
  id: string,
  after: string | undefined,
): AsyncGenerator<RequestEvent, void> {
  const pictures = createPictureAssembler();
  const delivered = new Set<number>();
  let last = after ?? '0-0';
  for await (const event of resumeEvents(call, id, after)) {
    if (event.type === 'image') {
      const picture = await pictureOf(call, pictures, event);
      if (picture !== undefined) {
        delivered.add(event.index);
        yield imageEvent(event, event.id, picture);
      }
    } else {
      if (event.type === 'succeeded') {
        const isMissing = (index: number): boolean =>
          !delivered.has(index) && (after === undefined || pictures.isOpen(index));
        for (const image of event.images.filter(({ index }) => isMissing(index)))
          yield imageEvent(event, last, await fetchPicture(call, image));
      }
      yield event;
    }
    last = event.id;
  }
}

/** Undefined while chunks are to come, and for a picture that is not there (any more). */
async function pictureOf(call: Call, pictures: PictureAssembler, chunk: ChunkEvent): Promise<Picture | undefined> {
  const data = pictures.add(chunk);
  if (data === 'open') return undefined;
  const { index, url, seed, width, height, content_type, bytes } = chunk;
  if (data !== 'broken') return { index, url, seed, width, height, content_type, bytes, data };
  try {
    return await fetchPicture(call, chunk);
  } catch (error) {
    // Another attempt makes it again (409), or the request ended without it (404): later events tell.
    if (error instanceof ClientError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

function imageEvent({ request_id, timestamp }: ChunkEvent | SucceededEvent, id: string, picture: Picture): ImageEvent {
  return { type: 'image', id, request_id, timestamp, ...picture };
}
