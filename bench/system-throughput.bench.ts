/**
 * Share of the engine's throughput that reaches clients: steps/s of the full system with 16 requests in flight, divided
 * by the same pipeline in a bare loop in one process. Both alternate in one run, because the machine is shared and
 * noisy.
 */
import { nonEmpty } from '@darkroom/core';
import { setTimeout as delay } from 'node:timers/promises';
import { loadPipeline } from '@darkroom/diffusion';
import { encodeImage } from '@darkroom/imaging';
import { it } from 'vitest';
import { ended, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { publishAtEnd } from './publish.ts';
import { medianWithRange } from './report.ts';
import { type Cell, tableOf } from './table.ts';

const rounds = 3;
const inFlight = 16;
const batchSize = 8;
const requestsPerRound = 48;
const standIn = { steps: 20, stepMs: 50, places: batchSize };
const body = { prompt: 'a red apple on a white background', guidance_scale: 3, scheduler: 'dpmpp_2m', preview: 'off' };

const bareNames = { all: 'bare loop, whole images', steps: 'bare loop, model and scheduler only' };

interface BareTimes {
  /** Seconds of model and scheduler only. */
  stepsS: number;
  /** Seconds including text encoding, VAE decoding and PNG encoding. */
  allS: number;
}

/** Makes the same images in batches of 8 with the bare pipeline. */
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
      await pipeline.step(nonEmpty(rows));
      stepsMs += performance.now() - start;
    }
    for (const row of rows)
      await encodeImage(await pipeline.finish(row), { outputFormat: 'png', outputCompression: 100 });
  }
  return { stepsS: stepsMs / 1000, allS: (performance.now() - begin) / 1000 };
}

/** Runs a closed loop of 16 clients that submit and wait; returns the seconds for all requests. */
async function runSystem(url: string, fields: object, seed: number): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < requestsPerRound) {
      const index = next++;
      const id = await submit(url, { ...fields, prompt: body.prompt, seed: seed + index });
      const outcome = await ended(url, id);
      if (outcome !== 'succeeded') throw new Error(`${id} ${outcome}`);
    }
  };
  await Promise.all(Array.from({ length: inFlight }, client));
  return (performance.now() - begin) / 1000;
}

/** Runs the stand-in alone with all its slots in use; returns the seconds for all images. */
async function runStandIn(): Promise<number> {
  const begin = performance.now();
  let next = 0;
  const place = async (): Promise<void> => {
    while (next++ < requestsPerRound) for (let step = 0; step < standIn.steps; step++) await delay(standIn.stepMs);
  };
  await Promise.all(Array.from({ length: standIn.places }, place));
  return (performance.now() - begin) / 1000;
}

const found: Record<string, Record<string, Cell>> = {};

publishAtEnd(() => ({
  name: 'system-throughput',
  title: "How much of the engine's speed reaches the clients",
  notes: [
    `${inFlight} requests in flight over HTTP and SSE, batches of up to ${batchSize} rows, guidance ${body.guidance_scale}, against the same pipeline in a bare loop in one process with batches of ${batchSize}; ${rounds} alternating rounds of ${requestsPerRound} images. Medians, with minimum and maximum.`,
    'The aim is 0.97 of the bare loop, images against images, and 0.98 with the stand-in.',
    `The stand-in takes time and no CPU: ${standIn.steps} steps of ${standIn.stepMs} ms for each of ${standIn.places} images at once (bench/stand-in.mjs).`,
    'The limit, if model and queue share two cores: the model lacks the CPU time that the queue uses per image (docs/benchmarks/added-latency-cpu.md). The shorter an image, the larger the share.',
    'Whole images are text encoding, steps, decoding and PNG: on few cores decoding and encoding compete for the same CPU, in the bare loop too.',
  ],
  tables: [
    tableOf('Row steps a second (more is better)', found, ['system', ...Object.values(bareNames)]),
    tableOf('System ÷ bare loop (more is better)', found, ['÷ whole images', '÷ model and scheduler only']),
  ],
}));

it.each([20, 50])('steps/s of the system over steps/s of a bare loop, %i steps an image', async (steps) => {
  const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
  const system = await startSystem({ environment: { BATCH_MAX_SIZE: String(batchSize) } });
  try {
    await runBare(pipeline, 4, 0);
    await runSystem(system.url, { ...body, num_inference_steps: 4 }, 0);
    const ratios: { steps: number; all: number }[] = [];
    const rates: { bareSteps: number; bareAll: number; system: number }[] = [];
    for (let round = 1; round <= rounds; round++) {
      const bare = await runBare(pipeline, steps, round * 1000);
      const systemS = await runSystem(system.url, { ...body, num_inference_steps: steps }, round * 1000);
      const rowSteps = requestsPerRound * steps;
      ratios.push({ steps: bare.stepsS / systemS, all: bare.allS / systemS });
      rates.push({ bareSteps: rowSteps / bare.stepsS, bareAll: rowSteps / bare.allS, system: rowSteps / systemS });
    }
    found[`${steps} steps`] = {
      system: medianWithRange(rates.map((each) => each.system)),
      [bareNames.all]: medianWithRange(rates.map(({ bareAll }) => bareAll)),
      [bareNames.steps]: medianWithRange(rates.map(({ bareSteps }) => bareSteps)),
      '÷ whole images': medianWithRange(ratios.map(({ all }) => all)),
      '÷ model and scheduler only': medianWithRange(ratios.map((each) => each.steps)),
    };
  } finally {
    await stopSystem(system);
    await pipeline.dispose();
  }
});

it('steps/s of the system over those of a stand-in alone', async () => {
  const environment = {
    EXECUTOR: new URL('stand-in.mjs', import.meta.url).pathname,
    MODEL_ID: 'stand-in',
    STAND_IN_STEPS: String(standIn.steps),
    STAND_IN_STEP_MS: String(standIn.stepMs),
    STAND_IN_SLOTS: String(standIn.places),
  };
  const system = await startSystem({ parts: ['api', 'batch-former', 'janitor', { name: 'worker', environment }] });
  try {
    await runSystem(system.url, {}, 0);
    const rates: { bare: number; system: number }[] = [];
    for (let round = 1; round <= rounds; round++) {
      const bareS = await runStandIn();
      const systemS = await runSystem(system.url, {}, round * 1000);
      const rowSteps = requestsPerRound * standIn.steps;
      rates.push({ bare: rowSteps / bareS, system: rowSteps / systemS });
    }
    found['stand-in, 20 steps'] = {
      system: medianWithRange(rates.map((each) => each.system)),
      [bareNames.all]: medianWithRange(rates.map(({ bare }) => bare)),
      '÷ whole images': medianWithRange(rates.map(({ bare, system: whole }) => whole / bare)),
    };
  } finally {
    await stopSystem(system);
  }
});
