import type { ClientContext } from './client-context.ts';
import { ClientError } from './client-error.ts';
import { fetchPicture } from './fetch-picture.ts';
import { followEvents, type FollowEventsOptions } from './follow-events.ts';
import { createPictureAssembler, type PictureAssembler } from './picture-assembler.ts';
import type { Picture } from './picture.ts';
import type { ImageEvent, RequestEvent, SucceededEvent } from './request-event.ts';
import type { ChunkEvent } from './wire-event.ts';

/** The events of a request with whole pictures; see {@link followEvents}. */
export async function* streamRequest(
  context: ClientContext,
  id: string,
  { after, signal }: FollowEventsOptions,
): AsyncGenerator<RequestEvent, void> {
  const pictures = createPictureAssembler();
  const delivered = new Set<number>();
  let last = after ?? '0-0';
  for await (const event of followEvents(context, id, { after, signal })) {
    if (event.type === 'image') {
      const picture = await pictureOf(context, pictures, event, signal);
      if (picture !== undefined) {
        delivered.add(event.index);
        yield imageEvent(event, event.id, picture);
      }
    } else {
      if (event.type === 'succeeded') {
        const isMissing = (index: number): boolean =>
          !delivered.has(index) && (after === undefined || pictures.isOpen(index));
        for (const image of event.images.filter(({ index }) => isMissing(index)))
          yield imageEvent(event, last, await fetchPicture(context, image, signal));
      }
      yield event;
    }
    last = event.id;
  }
}

/** Undefined while chunks are to come, and for a picture that is not there (any more). */
async function pictureOf(
  context: ClientContext,
  pictures: PictureAssembler,
  chunk: ChunkEvent,
  signal: AbortSignal | undefined,
): Promise<Picture | undefined> {
  const result = pictures.add(chunk);
  if (result.status === 'open') return undefined;
  const { index, url, seed, width, height, content_type, bytes } = chunk;
  if (result.status === 'whole') return { index, url, seed, width, height, content_type, bytes, data: result.data };
  try {
    return await fetchPicture(context, chunk, signal);
  } catch (error) {
    // Another attempt makes it again (409), or the request ended without it (404): later events tell.
    if (error instanceof ClientError && (error.status === 409 || error.status === 404)) return undefined;
    throw error;
  }
}

function imageEvent({ request_id, timestamp }: ChunkEvent | SucceededEvent, id: string, picture: Picture): ImageEvent {
  return { type: 'image', id, request_id, timestamp, ...picture };
}
