import { base64Of, formatOf, type ImageFrames, imageIndexOf } from './openai-image-events.ts';

/** Bytes of a picture in one frame, at most 400 KB: a multiple of three, so that the base64 of the chunks can be joined. */
export const frameBytes = Math.floor((400 * 1024) / 3) * 3;

/** A picture as frames of at most `frameBytes` of it. `chunk_id` is the same in all of them. */
export const chunkedFrames: ImageFrames = function* (picture, { id, input }) {
  const isFinal = picture.type === 'completed';
  const totalSteps = isFinal ? input.numInferenceSteps : picture.totalSteps;
  const step = isFinal ? totalSteps : picture.step;
  const imageIndex = imageIndexOf(picture);
  const totalChunks = Math.max(1, Math.ceil(picture.data.byteLength / frameBytes));
  for (let chunkIndex = 0; chunkIndex < totalChunks; chunkIndex++) {
    const data = {
      step,
      total_steps: totalSteps,
      progress: step / totalSteps,
      image: base64Of(picture.data.subarray(chunkIndex * frameBytes, (chunkIndex + 1) * frameBytes)),
      timestamp: picture.timestampMs / 1000,
      is_final: isFinal,
      is_chunked: totalChunks > 1,
      chunk_id: `${id}-${imageIndex}-${step}`,
      chunk_index: chunkIndex,
      total_chunks: totalChunks,
      output_format: formatOf(picture),
      image_index: imageIndex,
      request_id: id,
    };
    yield `data: ${JSON.stringify(data)}\n\n`;
  }
};
