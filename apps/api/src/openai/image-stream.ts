import { randomUUID } from 'node:crypto';
import type { Logger } from '@darkroom/service';
import type { ApiError } from '../http/api-error.ts';
import { errorBody, loggableError } from '../http/error-response.ts';
import { followPictures, type FollowPicturesDeps } from './follow-pictures.ts';
import type { ImageFrameContext, ImageFrames } from './openai-image-events.ts';
import { toStoredError } from './stored-request-error.ts';
import type { ClientWatch } from './watch-client.ts';

export interface ImageStreamOptions extends ImageFrameContext {
  partialImages: number;
  hasKey: boolean;
  frames: ImageFrames;
  watch: ClientWatch;
}

/** The pictures of a request as server-sent events. */
export async function* imageStream(
  deps: FollowPicturesDeps & { log: Logger },
  { id, input, partialImages, hasKey, frames, watch }: ImageStreamOptions,
): AsyncGenerator<string, void> {
  try {
    const following = { partialImages, withData: true, hasKey, signal: watch.gone };
    for await (const item of followPictures(deps, id, following)) {
      if (watch.gone.aborted) return;
      if (item.type === 'done' || item.type === 'failed') watch.stop();
      if (item.type === 'heartbeat') yield ': heartbeat\n\n';
      else if (item.type === 'done') yield 'data: [DONE]\n\n';
      else if (item.type === 'failed') yield errorFrame(id, item.error);
      else yield* frames(item, { id, input });
    }
  } catch (error) {
    watch.stop();
    const errorId = randomUUID();
    deps.log.error({ error_id: errorId, request_id: id, error: loggableError(error) }, 'a stream failed');
    yield errorFrame(id, toStoredError(error, errorId));
  }
}

/** OpenAI's clients throw what is in `error`; nothing follows. */
function errorFrame(id: string, error: ApiError): string {
  return `event: error\ndata: ${JSON.stringify({ ...errorBody(error), request_id: id })}\n\n`;
}
