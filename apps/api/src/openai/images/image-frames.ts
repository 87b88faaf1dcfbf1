/** What a stream of pictures is made of. */
import type { OutputInfo } from '@darkroom/core';
import { base64Of, type PictureInput, pictureSteps, promptCutView } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { sseFrame } from '../../follow/sse-frame.ts';
import type { CompletedPicture, PartialPicture } from './follow-pictures.ts';

/** Tokens are not counted here: a picture costs steps. OpenAI's clients want the fields, so they are 0. */
export const imageUsageSchema = z
  .strictObject({
    input_tokens: z.literal(0),
    output_tokens: z.literal(0),
    total_tokens: z.literal(0),
    input_tokens_details: z.strictObject({ text_tokens: z.literal(0), image_tokens: z.literal(0) }),
    steps: z.int().min(1).openapi({ description: 'Steps of all pictures.', example: 20 }),
    prompt_tokens_cut: z.int().min(0).openapi({
      description: "Tokens at the prompt's end that the model did not read, as in `GET /v1/predict/{id}`.",
    }),
  })
  .openapi('ImageUsage', { description: 'Tokens are not counted: a picture costs steps.' });

/** @param outputs those that are done. */
export function imageUsage(steps: number, outputs: readonly OutputInfo[]): z.infer<typeof imageUsageSchema> {
  const prompt_tokens_cut = promptCutView(outputs).prompt_tokens_cut ?? 0;
  const input_tokens_details = { text_tokens: 0, image_tokens: 0 } as const;
  return { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details, steps, prompt_tokens_cut };
}

/** What frames show of a request. */
type ShownInput = Pick<PictureInput, 'width' | 'height' | 'numInferenceSteps' | 'strength' | 'scheduler'>;

/** Frames of one picture of a request, as text. */
export type ImageFrames = (
  picture: PartialPicture | CompletedPicture,
  request: { id: string; input: ShownInput },
) => Iterable<string>;

function placeOf(picture: PartialPicture | CompletedPicture, input: ShownInput) {
  const isPartial = picture.type === 'partial';
  const contentType = isPartial ? picture.contentType : picture.output.contentType;
  const steps = pictureSteps(input);
  return {
    imageIndex: isPartial ? picture.imageIndex : picture.output.index,
    step: isPartial ? picture.step : steps,
    totalSteps: isPartial ? picture.totalSteps : steps,
    /** `png`, `jpeg` or `webp`. */
    format: contentType.slice('image/'.length),
  };
}

/** How OpenAI names the events of a stream: by what the pictures are made of. */
export type ImageEventName = 'image_generation' | 'image_edit';

/**
 * A picture as an event of OpenAI's image stream, with fields of our own behind theirs. `output_format` is the format of
 * the bytes in this event, and `size` the size of the picture that was asked for, of which a partial one is a small view.
 */
export function imageEventFrames(what: ImageEventName): ImageFrames {
  return function* (picture, request) {
    const { type, data } = imageEvent(what, picture, request);
    yield sseFrame({ event: type, data });
  };
}

function imageEvent(what: ImageEventName, ...[picture, { id, input }]: Parameters<ImageFrames>) {
  const { imageIndex, step, totalSteps, format } = placeOf(picture, input);
  const isPartial = picture.type === 'partial';
  const type = `${what}.${isPartial ? 'partial_image' : 'completed'}`;
  const data = {
    type,
    b64_json: base64Of(picture.data),
    ...(isPartial ? { partial_image_index: picture.partialIndex } : {}),
    created_at: Math.floor(picture.timestampMs / 1000),
    size: `${input.width}x${input.height}`,
    quality: 'auto',
    background: 'opaque',
    output_format: format,
    ...(isPartial ? {} : { usage: imageUsage(totalSteps, [picture.output]) }),
    image_index: imageIndex,
    step,
    total_steps: totalSteps,
    progress: step / totalSteps,
    request_id: id,
  };
  return { type, data };
}

/** Bytes of a picture in one frame, at most 400 KB: a multiple of three, so that the base64 of the chunks can be joined. */
export const frameBytes = Math.floor((400 * 1024) / 3) * 3;

/** A picture as frames of at most `frameBytes` of it. `chunk_id` is the same in all of them. */
export const chunkedFrames: ImageFrames = function* (picture, { id, input }) {
  const { imageIndex, step, totalSteps, format } = placeOf(picture, input);
  const totalChunks = Math.max(1, Math.ceil(picture.data.byteLength / frameBytes));
  for (let chunkIndex = 0; chunkIndex < totalChunks; chunkIndex++) {
    const data = {
      step,
      total_steps: totalSteps,
      progress: step / totalSteps,
      image: base64Of(picture.data.subarray(chunkIndex * frameBytes, (chunkIndex + 1) * frameBytes)),
      timestamp: picture.timestampMs / 1000,
      is_final: picture.type === 'completed',
      is_chunked: totalChunks > 1,
      chunk_id: `${id}-${imageIndex}-${step}`,
      chunk_index: chunkIndex,
      total_chunks: totalChunks,
      output_format: format,
      image_index: imageIndex,
      request_id: id,
    };
    yield sseFrame({ data });
  }
};
