import type { OutputEncoder } from './output-encoder.ts';

/** Those of a step, which are asked for in one go, are ready in one go too: writing them takes one call to Redis. */
export function gatherPreviews(encoder: OutputEncoder): OutputEncoder {
  let step: Promise<unknown>[] = [];
  return {
    encodeOutput: (input, output) => encoder.encodeOutput(input, output),
    async encodePreview(preview) {
      const encoding = encoder.encodePreview(preview);
      const ofStep = step;
      ofStep.push(encoding);
      // By then all of them are there.
      await Promise.resolve();
      if (step === ofStep) step = [];
      await Promise.allSettled(ofStep);
      return encoding;
    },
  };
}
