/**
 * How much of the engine's speed reaches the clients: steps/s of the whole system with 16 requests in flight, divided by
 * the same pipeline in a bare loop in one process. Both take turns in one run, because the machine is shared and noisy.
 */
import { loadPipeline } from '@darkroom/diffusion';
import { encodePicture } from '@darkroom/diffusion/encode';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { median, report } from './report.ts';

const rounds = 3;
const inFlight = 16;
const batchSize = 8;
const requestsPerRound = 48;
const body = { prompt: 'a red apple on a white background', guidance_scale: 3, scheduler: 'dpmpp_2m', preview: 'off' };

interface BareTimes {
  /** Model and scheduler only. */
  stepsS: number;
  /** With text encoding, VAE decoding and PNG encoding: all that makes a picture. */
  allS: number;
}

/** The same pictures in batches of 8, with nothing around the pipeline. */
async function runBare(
  pipeline: Awaited<ReturnType<typeof loadPipeline>>,
  steps: number,
  seed: number,
): Promise<BareTimes> {
  const begin = performance.now();
  let stepsMs = 0;
  for (let first = 0; first < requestsPerRound; first += batchSize) {
    const rows = [];
    for (let index = 0; index < batchSize; index++) {
      const input = {
        prompt: body.prompt,
        negativePrompt: '',
        width: 128,
        height: 128,
        n: 1,
        numInferenceSteps: steps,
        guidanceScale: body.guidance_scale,
        seed: seed + first + index,
        scheduler: body.scheduler,
        outputFormat: 'png',
        outputCompression: 100,
        previewEvery: 0,
      };
      rows.push(...(await pipeline.createRows({ id: `bare-${first + index}`, input })));
    }
    for (let step = 0; step < steps; step++) {
      const start = performance.now();
      await pipeline.step(rows);
      stepsMs += performance.now() - start;
    }
    for (const row of rows)
      await encodePicture(await pipeline.finish(row), { outputFormat: 'png', outputCompression: 100 });
  }
  return { stepsS: stepsMs / 1000, allS: (performance.now() - begin) / 1000 };
}

/** A closed loop of 16 clients that submit and wait; returns seconds for all requests. */
async function runSystem(url: string, steps: number, seed: number): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < requestsPerRound) {
      const index = next++;
      const id = await submit(url, { ...body, num_inference_steps: steps, seed: seed + index });
      const outcome = await ended(url, id);
      if (outcome !== 'succeeded') throw new Error(`${id} ${outcome}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return (performance.now() - begin) / 1000;
}

it.each([20, 50])(
  'steps/s of the system over steps/s of a bare loop, %i steps a picture',
  async (steps) => {
    const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
    const system = await startSystem({ environment: { BATCH_MAX_SIZE: String(batchSize) } });
    try {
      await runBare(pipeline, 4, 0);
      await runSystem(system.url, 4, 0);
      const ratios: { steps: number; all: number }[] = [];
      const rates: { bareSteps: number; bareAll: number; system: number }[] = [];
      for (let round = 1; round <= rounds; round++) {
        const bare = await runBare(pipeline, steps, round * 1000);
        const systemS = await runSystem(system.url, steps, round * 1000);
        const rowSteps = requestsPerRound * steps;
        ratios.push({ steps: bare.stepsS / systemS, all: bare.allS / systemS });
        rates.push({ bareSteps: rowSteps / bare.stepsS, bareAll: rowSteps / bare.allS, system: rowSteps / systemS });
      }
      const all = ratios.map((ratio) => ratio.all);
      report(`throughput, ${steps} steps a picture, ${rounds} rounds of ${requestsPerRound} pictures`, {
        'row steps/s, bare loop, model and scheduler only': median(rates.map(({ bareSteps }) => bareSteps)),
        'row steps/s, bare loop, whole pictures (text, steps, decode, PNG)': median(
          rates.map(({ bareAll }) => bareAll),
        ),
        'row steps/s, system, 16 requests in flight': median(rates.map(({ system: rate }) => rate)),
        'system / bare steps (median)': median(ratios.map((ratio) => ratio.steps)),
        'system / bare whole pictures (median)': median(all),
        'system / bare whole pictures (worst, best)': `${Math.min(...all).toFixed(3)}, ${Math.max(...all).toFixed(3)}`,
      });
    } finally {
      await stopSystem(system);
      await pipeline.dispose();
    }
  },
  600_000,
);
