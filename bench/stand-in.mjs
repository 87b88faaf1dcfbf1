/** A model that takes time and nothing else, as on a device of its own: the bench says how much, and how many pictures at once. */
import { setTimeout as delay } from 'node:timers/promises';

const [steps, stepMs, slots] = ['STAND_IN_STEPS', 'STAND_IN_STEP_MS', 'STAND_IN_SLOTS'].map((name) =>
  Number(process.env[name]),
);

/** @type {import('@darkroom/executor').CreatePictureExecutor} */
export const createExecutor = () => ({
  card: {
    kind: 'picture',
    sizes: { multiple: 8, min: 64, max: 64, default: { width: 64, height: 64 } },
    steps: { min: steps, max: steps, default: steps },
  },
  slots,
  async *run({ input: { width, height } }, signal) {
    for (let step = 1; step <= steps; step++) {
      await delay(stepMs, undefined, { signal });
      yield { step };
    }
    return { data: new Uint8Array(width * height * 3) };
  },
});
