/** Executor that takes time but no CPU, like a model on another device. The bench sets steps, step time and slots. */
import { setTimeout as delay } from 'node:timers/promises';

const [steps, stepMs, slots] = ['STAND_IN_STEPS', 'STAND_IN_STEP_MS', 'STAND_IN_SLOTS'].map((name) =>
  Number(process.env[name]),
);

/** @type {import('@darkroom/executor').CreateImageExecutor} */
export const createExecutor = () => ({
  card: {
    kind: 'image',
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
