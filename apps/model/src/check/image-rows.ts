/** Rows as a worker would create them, for checks and comparisons of models. */
import { nonEmpty, itemAt } from '@darkroom/core';
import type { ImagePipeline, ImageRow } from '@darkroom/diffusion';

/** Objects that every model knows to some degree, and the embedded one well. */
const things = ['red apple', 'cat', 'house', 'bicycle', 'rose', 'fish', 'pizza', 'snowman'];
const places = ['on a white background', 'on a blue background', 'on a green background', 'on a yellow background'];

/** Returns a prompt for each number; the first 32 are distinct. */
export function promptOf(at: number): string {
  return `a ${itemAt(things, at % 8)} ${itemAt(places, Math.floor(at / 8) % 4)}`;
}

/** Parameters that differ from the model's defaults. */
export interface WantedImage {
  prompt: string;
  seed: number;
  steps?: number | undefined;
  guidance?: number;
}

export async function createImageRow(pipeline: ImagePipeline, wanted: WantedImage): Promise<ImageRow> {
  const { sizes, steps, guidance, defaultScheduler } = pipeline.card;
  const input = {
    prompt: wanted.prompt,
    negativePrompt: '',
    ...sizes.default,
    n: 1,
    numInferenceSteps: wanted.steps ?? steps.default,
    guidanceScale: wanted.guidance ?? guidance.default,
    seed: wanted.seed,
    scheduler: defaultScheduler,
    previewEvery: 0,
  };
  const [row] = await pipeline.createRows({ id: `image-${wanted.seed}`, input });
  return row!;
}

/** Runs a step with the rows that are not done. */
export async function stepOpen(pipeline: ImagePipeline, rows: readonly ImageRow[]): Promise<void> {
  const { failures } = await pipeline.step(nonEmpty(rows.filter(({ isDone }) => !isDone)));
  for (const error of failures.values()) throw error;
}
