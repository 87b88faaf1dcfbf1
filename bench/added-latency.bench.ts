/**
 * What the system adds to a picture on an idle machine: from POST to the terminal event, minus the same picture made by
 * the pipeline and the encoder alone in one process. Both take turns, one picture each; the picture is small and takes few
 * steps, so that the difference does not drown in the noise of the inference.
 */
import { loadPipeline } from '@darkroom/diffusion';
import { encodePicture } from '@darkroom/diffusion/encode';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { quantile, report } from './report.ts';

const pictures = 200;
const body = {
  prompt: 'a red apple on a white background',
  num_inference_steps: 4,
  guidance_scale: 1,
  size: '64x64',
  scheduler: 'dpmpp_2m',
  preview: 'off',
};
const input = {
  prompt: body.prompt,
  negativePrompt: '',
  width: 64,
  height: 64,
  n: 1,
  numInferenceSteps: 4,
  guidanceScale: 1,
  scheduler: 'dpmpp_2m',
  outputFormat: 'png',
  outputCompression: 100,
  previewEvery: 0,
} as const;

it('milliseconds from POST to the terminal event, less inference and encoding', async () => {
  const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
  const system = await startSystem();
  const bare: number[] = [];
  const whole: number[] = [];
  try {
    for (let seed = 0; seed < pictures + 20; seed++) {
      const begin = performance.now();
      const [row] = await pipeline.createRows({ id: 'bare', input: { ...input, seed } });
      for (let step = 0; step < 4; step++) await pipeline.step([row!]);
      await encodePicture(await pipeline.finish(row!), { outputFormat: 'png', outputCompression: 100 });
      const middle = performance.now();
      await ended(system.url, await submit(system.url, { ...body, seed }));
      // The first ones warm up both.
      if (seed >= 20) {
        bare.push(middle - begin);
        whole.push(performance.now() - middle);
      }
    }
  } finally {
    await stopSystem(system);
    await pipeline.dispose();
  }
  const added = whole.map((ms, index) => ms - bare[index]!);
  report(`added latency, ${pictures} pictures of 64×64 and 4 steps, one at a time`, {
    'bare pipeline and encoding, ms, p50': quantile(bare, 0.5),
    'POST to terminal event, ms, p50': quantile(whole, 0.5),
    'added, ms, p50': quantile(added, 0.5),
    'added, ms, p90': quantile(added, 0.9),
  });
}, 600_000);
