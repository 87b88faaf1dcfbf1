/** OpenAI's way of asking for pictures, as a view of a request like any other: what its routes have in common. */
import { base64Of, imageUrl, picture as pictureKind, type PictureInput, pictureSteps } from '@darkroom/kinds';
import type { z } from 'zod';
import type { ApiContext } from '../../context.ts';
import { answerStored, streamStored } from '../../follow/answer-stored.ts';
import { heartbeatFrame } from '../../follow/sse-frame.ts';
import type { ClientWatch } from '../../follow/watch-client.ts';
import type { ApiCall } from '../../http/api-env.ts';
import { absoluteUrl, pictureLinks } from '../../http/urls.ts';
import type { Submission, SubmittedRequest } from '../../submit/submit-request.ts';
import { followPictures } from './follow-pictures.ts';
import { chunkedFrames, type ImageEventName, imageEventFrames, imageUsage } from './image-frames.ts';
import type { ImagesAsked } from './images-body.ts';
import type { imagesResponseSchema } from './openai-images-schema.ts';

/** Answers with the pictures, or a stream of them. `from`: what came with the body, and what a mask means. */
export async function answerImages(
  c: ApiCall,
  context: ApiContext,
  { picture, stream, partialImages, responseFormat }: ImagesAsked,
  { name, ...from }: { name: ImageEventName } & Pick<Submission, 'uploads' | 'maskBy'>,
): Promise<Response> {
  const refine = (made: unknown): PictureInput => withPartials(made as PictureInput, partialImages);
  const submission = { ...from, body: picture, kind: pictureKind.id, refine };
  const urlOf = responseFormat === 'url' ? (path: string): string => absoluteUrl(c, path) : undefined;
  if (stream === undefined) {
    const owner = c.get('owner');
    return answerStored(c, context, submission, (submitted, watch) =>
      imagesAnswer(context, watch, { ...submitted, owner }, urlOf),
    );
  }
  const framesOf = stream === 'chunked' ? chunkedFrames : imageEventFrames(name);
  return streamStored(c, context, submission, async function* ({ id, input }, watch) {
    for await (const item of followPictures(context, { id, watch, partialImages, withData: true }))
      if (item === 'heartbeat') yield heartbeatFrame;
      else yield* framesOf(item, { id, input: input as PictureInput });
  });
}

/** Previews at such a distance that there are as many as asked for wherever there are as many steps. */
function withPartials(input: PictureInput, partialImages: number): PictureInput {
  const distance = Math.max(1, Math.floor(pictureSteps(input) / (partialImages + 1)));
  return { ...input, previewEvery: partialImages === 0 ? 0 : distance };
}

/** Waits for all pictures. `urlOf`: undefined where they themselves are wanted. */
async function imagesAnswer(
  context: ApiContext,
  watch: ClientWatch,
  { id, input: made, owner }: SubmittedRequest & { owner: string },
  urlOf: ((path: string) => string) | undefined,
) {
  const input = made as PictureInput;
  const steps = input.n * pictureSteps(input);
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
