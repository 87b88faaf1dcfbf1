/**
 * `POST /v1/images/generations`: OpenAI's way of asking for pictures, as a view of a request like any other.
 *
 * - `X-Request-Id` is the request's id, which OpenAI's SDKs show as `_request_id`; every other route takes it. A stream's
 *   headers go out before its first byte; one answer's headers go out with the answer, for nobody knows its status before.
 * - A client that goes away before it has its answer cancels the request: it has no other way to say so, and who waits
 *   for one answer has never seen an id. SDKs go away too when their patience is over, and then send the POST again; that
 *   is a new request, and the old one must not be drawn beside it. With an `Idempotency-Key` a client may come back to
 *   the same request, so with one nothing is canceled: it is for `DELETE /v1/predict/{id}` then.
 * - Before the request is stored, errors are as everywhere, and SDKs may try again. After that an error is a 422 that no
 *   SDK sends again (`stored-request-error.ts`), or in a stream an event `error`.
 * - A Redis that goes away meanwhile is waited for. When this process is told to stop, answers wait for `drainGraceMs`
 *   more; then they say where the request goes on, and SDKs with an `Idempotency-Key` are told to send it again.
 */
import { randomUUID } from 'node:crypto';
import type { ApiConfig } from '@darkroom/config';
import { imageUrl, picture as pictureKind, type PictureInput } from '@darkroom/kinds';
import type { Context } from 'hono';
import type { z } from 'zod';
import type { ApiEnv } from '../http/api-env.ts';
import { absoluteUrl } from '../http/urls.ts';
import { ApiError, invalidFields } from '../http/api-error.ts';
import { addRoute, type Api } from '../http/api-route.ts';
import { loggableError } from '../http/error-response.ts';
import type { StreamEvents } from '../follow/stream-events.ts';
import { followPictures, type FollowPicturesDeps } from './follow-pictures.ts';
import { imageStream } from './image-stream.ts';
import { chunkedFrames } from './openai-chunked-frames.ts';
import { base64Of, imageEventFrames } from './openai-image-events.ts';
import { imagesGenerationsRoute, type imagesResponseSchema } from './openai-images-document.ts';
import { type ImagesRequest, parseImagesBody } from './openai-images-schema.ts';
import { imageUsage } from './openai-usage.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { toStoredError } from './stored-request-error.ts';
import { submitOverHttp } from '../submit/submit-over-http.ts';
import type { SubmittedRequest, SubmitRequest } from '../submit/submit-request.ts';
import { type ClientWatch, watchClient, type WatchClientDeps } from './watch-client.ts';

type ImagesDeps = FollowPicturesDeps &
  WatchClientDeps & {
    config: Pick<ApiConfig, 'maxBodyBytes'>;
    submitRequest: SubmitRequest;
    streamEvents: StreamEvents;
  };

export function addImagesGenerationsRoute(api: Api, deps: ImagesDeps): void {
  addRoute(api, imagesGenerationsRoute, async (c) => {
    const parsed = parseImagesBody(await readJsonBody(c, deps.config.maxBodyBytes));
    if (parsed.status === 'invalid') throw invalidFields(parsed.problems);
    const { picture, stream, partialImages, responseFormat } = parsed.request;
    const refine = (made: unknown): PictureInput => withPartials(made as PictureInput, partialImages);
    const request = { body: picture, kind: pictureKind.id, refine };
    const hasKey = c.req.header('idempotency-key') !== undefined;
    const submit = async (): Promise<{ submitted: SubmittedPicture; watch: ClientWatch }> => {
      const submitted = withInput(await submitOverHttp(c, deps.submitRequest, request));
      const { id } = submitted;
      c.header('X-Request-Id', id);
      return { submitted, watch: watchClient(deps, { id, owner: c.get('owner'), signal: c.req.raw.signal, hasKey }) };
    };
    if (stream === undefined)
      return c.json(await oneAnswer(c, deps, { ...(await submit()), responseFormat, hasKey }), 200);
    const frames = stream === 'chunked' ? chunkedFrames : imageEventFrames;
    return deps.streamEvents(c, async () => {
      const { submitted, watch } = await submit();
      return {
        frames(gone) {
          // A reader that goes away has gone for good.
          gone.addEventListener('abort', () => watch.leave());
          return imageStream(deps, { ...submitted, partialImages, hasKey, frames, watch });
        },
      };
    });
  });
}

/** Previews at such a distance that there are as many as asked for wherever there are as many steps. */
function withPartials(input: PictureInput, partialImages: number): PictureInput {
  const distance = Math.max(1, Math.floor(input.numInferenceSteps / (partialImages + 1)));
  return { ...input, previewEvery: partialImages === 0 ? 0 : distance };
}

type SubmittedPicture = SubmittedRequest & { input: PictureInput };

/** What this route takes in are pictures. */
function withInput(submitted: SubmittedRequest): SubmittedPicture {
  return { ...submitted, input: submitted.input as PictureInput };
}

interface OneAnswerOptions {
  submitted: SubmittedPicture;
  responseFormat: ImagesRequest['responseFormat'];
  hasKey: boolean;
  watch: ClientWatch;
}

type ImagesResponse = z.infer<typeof imagesResponseSchema>;

/** Waits for all pictures. */
async function oneAnswer(
  c: Context<ApiEnv>,
  deps: ImagesDeps,
  { submitted, responseFormat, hasKey, watch }: OneAnswerOptions,
): Promise<ImagesResponse> {
  const { id, input } = submitted;
  const isInline = responseFormat === 'b64_json';
  const steps = input.n * input.numInferenceSteps;
  const answer: ImagesResponse = {
    created: 0,
    data: [],
    background: 'opaque',
    output_format: input.outputFormat,
    size: `${input.width}x${input.height}`,
    usage: imageUsage(steps, []),
  };
  try {
    const options = { partialImages: 0, withData: isInline, hasKey, signal: watch.gone };
    for await (const item of followPictures(deps, id, options)) {
      if (item.type === 'failed') throw item.error;
      if (item.type !== 'completed') continue;
      const { output, data, timestampMs } = item;
      answer.created = Math.floor(timestampMs / 1000);
      answer.usage = imageUsage(steps, [output]);
      answer.data[output.index] = isInline
        ? { b64_json: base64Of(data) }
        : { url: absoluteUrl(c, imageUrl(id, output.index)) };
    }
    return answer;
  } catch (error) {
    const errorId = randomUUID();
    if (!(error instanceof ApiError))
      deps.log.error({ error_id: errorId, request_id: id, error: loggableError(error) }, 'an answer failed');
    throw toStoredError(error, errorId);
  } finally {
    watch.stop();
  }
}
