/** `POST /v1/images/generations`: OpenAI's way of asking for pictures, as a view of a request like any other. */
import { base64Of, imageUrl, picture as pictureKind, type PictureInput } from '@darkroom/kinds';
import type { z } from 'zod';
import type { ApiContext } from '../../context.ts';
import { heartbeatFrame } from '../../follow/sse-frame.ts';
import type { Route } from '../../http/api-route.ts';
import { readJsonBody } from '../../http/read-json-body.ts';
import { absoluteUrl, pictureLinks } from '../../http/urls.ts';
import type { SubmittedRequest } from '../../submit/submit-request.ts';
import { answerStored, streamStored } from '../../follow/answer-stored.ts';
import { followPictures } from './follow-pictures.ts';
import { chunkedFrames, imageEventFrames, imageUsage } from './image-frames.ts';
import { imagesGenerationsDocument, type imagesResponseSchema, parseImagesBody } from './openai-images-schema.ts';
import type { ClientWatch } from '../../follow/watch-client.ts';

export const imagesGenerationsRoute: Route = {
  ...imagesGenerationsDocument,
  async handle(c, context) {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const { picture, stream, partialImages, responseFormat } = parseImagesBody(body);
    const refine = (made: unknown): PictureInput => withPartials(made as PictureInput, partialImages);
    const submission = { body: picture, kind: pictureKind.id, refine };
    const urlOf: UrlOf = (path) => absoluteUrl(c, path);
    if (stream === undefined)
      return answerStored(c, context, submission, (submitted, watch) =>
        imagesAnswer(
          context,
          watch,
          { ...submitted, owner: c.get('owner') },
          responseFormat === 'url' ? urlOf : undefined,
        ),
      );
    const framesOf = stream === 'chunked' ? chunkedFrames : imageEventFrames;
    return streamStored(c, context, submission, async function* ({ id, input }, watch) {
      for await (const item of followPictures(context, { id, watch, partialImages, withData: true }))
        if (item === 'heartbeat') yield heartbeatFrame;
        else yield* framesOf(item, { id, input: input as PictureInput });
    });
  },
};

/** Previews at such a distance that there are as many as asked for wherever there are as many steps. */
function withPartials(input: PictureInput, partialImages: number): PictureInput {
  const distance = Math.max(1, Math.floor(input.numInferenceSteps / (partialImages + 1)));
  return { ...input, previewEvery: partialImages === 0 ? 0 : distance };
}

type UrlOf = (path: string) => string;

/** Waits for all pictures. `urlOf`: undefined where they themselves are wanted. */
async function imagesAnswer(
  context: ApiContext,
  watch: ClientWatch,
  { id, input: made, owner }: SubmittedRequest & { owner: string },
  urlOf: UrlOf | undefined,
) {
  const input = made as PictureInput;
  const steps = input.n * input.numInferenceSteps;
  const answer: z.infer<typeof imagesResponseSchema> = {
    created: 0,
    data: [],
    background: 'opaque',
    output_format: input.outputFormat,
    size: `${input.width}x${input.height}`,
    usage: imageUsage(steps, []),
  };
  const withData = urlOf === undefined;
  for await (const item of followPictures(context, { id, watch, partialImages: 0, withData })) {
    if (item === 'heartbeat' || item.type !== 'completed') continue;
    const { output, data, timestampMs } = item;
    answer.created = Math.floor(timestampMs / 1000);
    answer.usage = imageUsage(steps, [output]);
    if (urlOf === undefined) answer.data[output.index] = { b64_json: base64Of(data) };
    else {
      const linkOf = await pictureLinks(context.askStore, { owner, fromMs: timestampMs });
      answer.data[output.index] = { url: urlOf(linkOf(imageUrl(id, output.index))) };
    }
  }
  return answer;
}
