import type { OutputEncoder } from './output-encoder.ts';

/** Makes the previews of one step resolve together, so that writing them takes one call to Redis. */
export function gatherPreviews(encoder: OutputEncoder): OutputEncoder {
  let step: Promise<unknown>[] = [];
  return {
    encodeOutput: (input, output) => encoder.encodeOutput(input, output),
    async encodePreview(preview) {
      const encoding = encoder.encodePreview(preview);
      const ofStep = step;
      ofStep.push(encoding);
      // After this microtask, all previews of the step are in the list.
      await Promise.resolve();
      if (step === ofStep) step = [];
      await Promise.allSettled(ofStep);
      return encoding;
    },
  };
}
