/** What a stream of pictures is made of. */
import type { PictureInput } from '@darkroom/kinds';
import { sseFrame } from '../follow/sse-frame.ts';
import type { CompletedPicture, PartialPicture } from './follow-pictures.ts';
import { imageUsage } from './openai-usage.ts';

/** Frames of one picture of a request, as text. */
export type ImageFrames = (
  picture: PartialPicture | CompletedPicture,
  request: { id: string; input: PictureInput },
) => Iterable<string>;

/** Of which picture, and how far it is. */
function placeOf(picture: PartialPicture | CompletedPicture, { numInferenceSteps }: PictureInput) {
  const isPartial = picture.type === 'partial';
  const contentType = isPartial ? picture.contentType : picture.output.contentType;
  return {
    imageIndex: isPartial ? picture.imageIndex : picture.output.index,
    step: isPartial ? picture.step : numInferenceSteps,
    totalSteps: isPartial ? picture.totalSteps : numInferenceSteps,
    /** `png`, `jpeg` or `webp`. */
    format: contentType.slice('image/'.length),
  };
}

/**
 * A picture as an event of OpenAI's image stream, with fields of our own behind theirs. `output_format` is the format of
 * the bytes in this event, and `size` the size of the picture that was asked for, of which a partial one is a small view.
 */
export const imageEventFrames: ImageFrames = function* (picture, { id, input }) {
  const { imageIndex, step, totalSteps, format } = placeOf(picture, input);
  const isPartial = picture.type === 'partial';
  const type = isPartial ? 'image_generation.partial_image' : 'image_generation.completed';
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
  yield sseFrame({ event: type, data });
};

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

export function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}
