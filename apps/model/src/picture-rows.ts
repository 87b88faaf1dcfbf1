/** Pictures as a worker would make them, for the programs that try a model. */
import type { PicturePipeline, PictureRow } from '@darkroom/diffusion';

/** Of which every model knows something, the embedded one all. */
const things = ['red apple', 'cat', 'house', 'bicycle', 'rose', 'fish', 'pizza', 'snowman'];
const places = ['on a white background', 'on a blue background', 'on a green background', 'on a yellow background'];

/** A prompt for each number, no two of the first 32 alike. */
export function promptOf(at: number): string {
  return `a ${things[at % 8]!} ${places[Math.floor(at / 8) % 4]!}`;
}

/** What is not the model's own default. */
export interface WantedPicture {
  prompt: string;
  seed: number;
  steps?: number | undefined;
  guidance?: number;
}

export async function createPictureRow(pipeline: PicturePipeline, wanted: WantedPicture): Promise<PictureRow> {
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
  const [row] = await pipeline.createRows({ id: `picture-${wanted.seed}`, input });
  return row!;
}

/** Takes a step with those that are not done. */
export async function stepOpen(pipeline: PicturePipeline, rows: readonly PictureRow[]): Promise<void> {
  const { failures } = await pipeline.step(rows.filter(({ isDone }) => !isDone));
  for (const error of failures.values()) throw error;
}
