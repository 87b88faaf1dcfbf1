/** Answers of OpenAI's image routes. Each is a view of an ordinary request. */
import { base64Of, imageUrl, imageKind, type ImageInput, imageSteps } from '@darkroom/kinds';
import type { z } from 'zod';
import type { ApiContext } from '../../context/context.ts';
import { withClientFieldNames } from '../../compat/client-field-names.ts';
import { answerStored, streamStored } from '../../answer/answer-stored.ts';
import { heartbeatFrame } from '../../follow/sse-frame.ts';
import type { ClientWatch } from '../../answer/watch-client.ts';
import type { ApiCall } from '../../http/api-env.ts';
import { absoluteUrl } from '../../http/public-url.ts';
import type { Submission, SubmittedRequest } from '../../submit/submit-request.ts';
import { followImages } from './follow-images.ts';
import { chunkedFrames, type ImageEventName, imageEventFrames, imageUsage } from './image-frames.ts';
import type { ParsedImagesBody } from './images-body.ts';
import type { imagesResponseSchema } from './openai-images-schema.ts';
import { imageLinks } from '../../auth/image-links.ts';

/** Answers with all images, or streams them. `from`: uploads, the meaning of a mask and the stream's event names. */
export function answerImages(...[c, context, parsed, from]: Parameters<typeof answer>): Promise<Response> {
  return withClientFieldNames({ preview: 'partial_images' }, () => answer(c, context, parsed, from));
}

async function answer(
  c: ApiCall,
  context: ApiContext,
  { image, stream, partialImages, responseFormat }: ParsedImagesBody,
  { name, ...from }: { name: ImageEventName } & Pick<Submission, 'uploads' | 'maskBy'>,
): Promise<Response> {
  const refine = (made: unknown): ImageInput => withPartials(made as ImageInput, partialImages);
  const submission = { ...from, body: image, kind: imageKind.id, refine };
  const urlOf = responseFormat === 'url' ? (path: string): string => absoluteUrl(c, path) : undefined;
  if (stream === undefined) {
    const owner = c.get('owner');
    return answerStored(c, context, submission, (submitted, watch) =>
      imagesAnswer(context, watch, { ...submitted, owner }, urlOf),
    );
  }
  const framesOf = stream === 'chunked' ? chunkedFrames : imageEventFrames(name);
  return streamStored(c, context, submission, async function* ({ id, input }, watch) {
    for await (const item of followImages(context, { id, watch, partialImages, withData: true }))
      if (item === 'heartbeat') yield heartbeatFrame;
      else yield* framesOf(item, { id, input: input as ImageInput });
  });
}

/** Sets `previewEvery` so that `partialImages` previews spread over the steps, if there are that many steps. */
function withPartials(input: ImageInput, partialImages: number): ImageInput {
  const distance = Math.max(1, Math.floor(imageSteps(input) / (partialImages + 1)));
  return { ...input, previewEvery: partialImages === 0 ? 0 : distance };
}

/** Waits for all images. Answers with URLs if `urlOf` is set, with base64 otherwise. */
async function imagesAnswer(
  context: ApiContext,
  watch: ClientWatch,
  { id, input: made, owner }: SubmittedRequest & { owner: string },
  urlOf: ((path: string) => string) | undefined,
) {
  const input = made as ImageInput;
  const steps = input.n * imageSteps(input);
  const answer: z.infer<typeof imagesResponseSchema> = {
    created: 0,
    data: [],
    background: 'opaque',
    output_format: input.outputFormat,
    size: `${input.width}x${input.height}`,
    usage: imageUsage(steps, []),
  };
  const withData = urlOf === undefined;
  for await (const item of followImages(context, { id, watch, partialImages: 0, withData })) {
    if (item === 'heartbeat' || item.type !== 'completed') continue;
    const { output, data, timestampMs } = item;
    answer.created = Math.floor(timestampMs / 1000);
    answer.usage = imageUsage(steps, [output]);
    if (urlOf === undefined) answer.data[output.index] = { b64_json: base64Of(data) };
    else {
      const linkOf = await imageLinks(context.withStore, { owner, fromMs: timestampMs });
      answer.data[output.index] = { url: urlOf(linkOf(imageUrl(id, output.index))) };
    }
  }
  return answer;
}
