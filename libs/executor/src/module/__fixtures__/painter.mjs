// A module that draws one colour, with a preview per step; steps of an image 1024 pixels wide are slow.
import { randomFillSync } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const dot = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const file = { data: dot, contentType: 'image/png' };

const ends = {
  file: () => file,
  'a clamped array': () => ({ data: new Uint8ClampedArray(3) }),
  'too few pixels': () => ({ data: Buffer.alloc(12) }),
  'no such file': () => ({ data: dot, contentType: 'image/jpeg' }),
  nothing: () => undefined,
};
const steps = { 'steps back': [2, 1], 'too many steps': [5], 'half a step': [0.5] };

export function createExecutor({ model }) {
  return {
    card: {
      kind: 'image',
      id: model,
      sizes: { multiple: 8, min: 8, max: 1024, default: { width: 16, height: 16 } },
      steps: { min: 1, max: 8, default: 4 },
    },
    slots: 2,
    async *run({ seed, input: { prompt, width, height, numInferenceSteps } }, signal) {
      if (prompt === 'nonsense') throw Object.assign(new Error('prompt: makes no sense'), { code: 'invalid_request' });
      for (const step of steps[prompt] ?? Array.from({ length: numInferenceSteps }, (_, at) => at + 1)) {
        await delay(width === 1024 ? 1000 : 1, undefined, { signal });
        yield { step, preview: prompt === 'a wrong preview' ? { data: dot } : file };
      }
      const pixels = Buffer.alloc(width * height * 3, prompt);
      pixels.writeUInt32LE(seed);
      // A PNG of noise is as large as the pixels.
      if (prompt === 'noise') randomFillSync(pixels);
      return prompt in ends ? ends[prompt]() : { data: pixels };
    },
  };
}
