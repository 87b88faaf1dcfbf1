import type { PictureInput } from '@darkroom/kinds';
import type { CompletedPicture, PartialPicture } from './follow-pictures.ts';
import { imageUsage } from './openai-usage.ts';

export interface ImageFrameContext {
  id: string;
  input: PictureInput;
}

/** Frames of one picture, as text. */
export type ImageFrames = (picture: PartialPicture | CompletedPicture, context: ImageFrameContext) => Iterable<string>;

/**
 * A picture as an event of OpenAI's image stream, with fields of our own behind theirs. `output_format` is the format of
 * the bytes in this event, and `size` the size of the picture that was asked for, of which a partial one is a small view.
 */
export const imageEventFrames: ImageFrames = function* (picture, { id, input }) {
  const isPartial = picture.type === 'partial';
  const totalSteps = isPartial ? picture.totalSteps : input.numInferenceSteps;
  const step = isPartial ? picture.step : totalSteps;
  const type = isPartial ? 'image_generation.partial_image' : 'image_generation.completed';
  const data = {
    type,
    b64_json: base64Of(picture.data),
    ...(isPartial ? { partial_image_index: picture.partialIndex } : {}),
    created_at: Math.floor(picture.timestampMs / 1000),
    size: `${input.width}x${input.height}`,
    quality: 'auto',
    background: 'opaque',
    output_format: formatOf(picture),
    ...(isPartial ? {} : { usage: imageUsage(totalSteps, [picture.output]) }),
    image_index: imageIndexOf(picture),
    step,
    total_steps: totalSteps,
    progress: step / totalSteps,
    request_id: id,
  };
  yield `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
};

export function imageIndexOf(picture: PartialPicture | CompletedPicture): number {
  return picture.type === 'partial' ? picture.imageIndex : picture.output.index;
}

/** `png`, `jpeg` or `webp`. */
export function formatOf(picture: PartialPicture | CompletedPicture): string {
  const contentType = picture.type === 'partial' ? picture.contentType : picture.output.contentType;
  return contentType.slice('image/'.length);
}

export function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}
