/** Server-sent events of an image stream: OpenAI's events and chunked frames. */
import type { OutputInfo } from '@darkroom/core';
import { base64Of, type ImageInput, imageSteps, promptCutView } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { sseFrame } from '../../follow/sse-frame.ts';
import type { CompletedImage, PartialImage } from './follow-images.ts';

/** Usage of an image request: its steps. OpenAI's clients require the token counts, which are always 0. */
export const imageUsageSchema = z
  .strictObject({
    input_tokens: z.literal(0),
    output_tokens: z.literal(0),
    total_tokens: z.literal(0),
    input_tokens_details: z.strictObject({ text_tokens: z.literal(0), image_tokens: z.literal(0) }),
    steps: z.int().min(1).openapi({ description: 'Steps of all images together.', example: 20 }),
    prompt_tokens_cut: z.int().min(0).openapi({
      description: "Tokens cut from the prompt's end because the model reads no more, as in `GET /v1/predict/{id}`.",
    }),
  })
  .openapi('ImageUsage', { description: 'The cost of an image is its steps; token counts are always 0.' });

/** @param outputs the completed outputs. */
export function imageUsage(steps: number, outputs: readonly OutputInfo[]): z.infer<typeof imageUsageSchema> {
  const prompt_tokens_cut = promptCutView(outputs).prompt_tokens_cut ?? 0;
  const input_tokens_details = { text_tokens: 0, image_tokens: 0 } as const;
  return { input_tokens: 0, output_tokens: 0, total_tokens: 0, input_tokens_details, steps, prompt_tokens_cut };
}

/** Fields of the input that frames show. */
type ShownInput = Pick<ImageInput, 'width' | 'height' | 'numInferenceSteps' | 'strength' | 'scheduler'>;

/** Encodes one image of a request as server-sent events. */
export type ImageFrames = (
  image: PartialImage | CompletedImage,
  request: { id: string; input: ShownInput },
) => Iterable<string>;

function progressOf(image: PartialImage | CompletedImage, input: ShownInput) {
  const isPartial = image.type === 'partial';
  const contentType = isPartial ? image.contentType : image.output.contentType;
  const steps = imageSteps(input);
  return {
    imageIndex: isPartial ? image.imageIndex : image.output.index,
    step: isPartial ? image.step : steps,
    totalSteps: isPartial ? image.totalSteps : steps,
    /** `png`, `jpeg` or `webp`. */
    format: contentType.slice('image/'.length),
  };
}

/** Prefix of OpenAI's event names: it depends on the route. */
export type ImageEventName = 'image_generation' | 'image_edit';

/**
 * Encodes an image as an event of OpenAI's image stream, followed by our additional fields. `output_format` is the
 * format of this event's bytes; `size` is the requested size, also in the event of a (smaller) partial image.
 */
export function imageEventFrames(what: ImageEventName): ImageFrames {
  return function* (image, request) {
    const { type, data } = imageEvent(what, image, request);
    yield sseFrame({ event: type, data });
  };
}

function imageEvent(what: ImageEventName, ...[image, { id, input }]: Parameters<ImageFrames>) {
  const { imageIndex, step, totalSteps, format } = progressOf(image, input);
  const isPartial = image.type === 'partial';
  const type = `${what}.${isPartial ? 'partial_image' : 'completed'}`;
  const data = {
    type,
    b64_json: base64Of(image.data),
    ...(isPartial ? { partial_image_index: image.partialIndex } : {}),
    created_at: Math.floor(image.timestampMs / 1000),
    size: `${input.width}x${input.height}`,
    quality: 'auto',
    background: 'opaque',
    output_format: format,
    ...(isPartial ? {} : { usage: imageUsage(totalSteps, [image.output]) }),
    image_index: imageIndex,
    step,
    total_steps: totalSteps,
    progress: step / totalSteps,
    request_id: id,
  };
  return { type, data };
}

/** Maximum image bytes per frame (400 KB). A multiple of three, so that the base64 chunks can be concatenated. */
export const frameBytes = Math.floor((400 * 1024) / 3) * 3;

/** Splits an image into frames of at most `frameBytes` image bytes each. All frames of an image share a `chunk_id`. */
export const chunkedFrames: ImageFrames = function* (image, { id, input }) {
  const { imageIndex, step, totalSteps, format } = progressOf(image, input);
  const totalChunks = Math.max(1, Math.ceil(image.data.byteLength / frameBytes));
  for (let chunkIndex = 0; chunkIndex < totalChunks; chunkIndex++) {
    const data = {
      step,
      total_steps: totalSteps,
      progress: step / totalSteps,
      image: base64Of(image.data.subarray(chunkIndex * frameBytes, (chunkIndex + 1) * frameBytes)),
      timestamp: image.timestampMs / 1000,
      is_final: image.type === 'completed',
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
