/**
 * Latency that the system adds to an image on an idle machine: time from POST to the terminal event, minus the time of
 * the pipeline and the encoder alone. Both alternate; the image is small, so that noise of the inference does not hide
 * the difference. A minimal server takes part too, as the lower bound for the same client.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadPipeline } from '@darkroom/diffusion';
import { encodeImage } from '@darkroom/imaging';
import { inject, it } from 'vitest';
import { type ServerEvent, stream, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { publish } from './publish.ts';
import { percentileTable } from './table.ts';

const images = 200;
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

const phaseNames = ['POST to stored', 'stored to leased', 'leased to stored', 'end to client'];

/** Returns the phases by the events' timestamps, which are whole milliseconds. */
function phasesOf(events: readonly ServerEvent[], postMs: number, endMs: number): number[] {
  const times = events
    .filter(({ event }) => event !== undefined)
    .map(({ event, data }) => ({ event, ms: Date.parse((JSON.parse(data) as { timestamp: string }).timestamp) }));
  const first = (type: string): number => times.find(({ event }) => event === type)!.ms;
  return [
    first('queued') - postMs,
    first('started') - first('queued'),
    first('image') - first('started'),
    endMs - first('succeeded'),
  ];
}

it('milliseconds from POST to the terminal event, minus inference and encoding', async () => {
  const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
  const system = await startSystem();
  const server = fork('bench/least-server.mjs', [inject('redisUrl')], { execArgv: [] });
  const [{ url: leastUrl }] = (await once(server, 'message')) as [{ url: string }];
  const least: number[] = [];
  const bare: number[] = [];
  const whole: number[] = [];
  const phases: number[][] = [];
  try {
    for (let seed = 0; seed < images + 20; seed++) {
      const begin = performance.now();
      const [row] = await pipeline.createRows({ id: 'bare', input: { ...input, seed } });
      for (let step = 0; step < 4; step++) await pipeline.step([row!]);
      await encodeImage(await pipeline.finish(row!), { outputFormat: 'png', outputCompression: 100 });
      const middle = performance.now();
      const events = await stream(system.url, await submit(system.url, { ...body, seed }));
      const end = performance.now();
      await stream(leastUrl, await submit(leastUrl, { ...body, seed }));
      const last = performance.now();
      // The first images warm up both.
      if (seed >= 20) {
        bare.push(middle - begin);
        whole.push(end - middle);
        least.push(last - end);
        phases.push(phasesOf(events, performance.timeOrigin + middle, performance.timeOrigin + end));
      }
    }
  } finally {
    server.disconnect();
    await stopSystem(system);
    await pipeline.dispose();
  }
  const added = whole.map((ms, index) => ms - bare[index]!);
  publish({
    name: 'added-latency',
    title: 'What the system adds to an image on an idle machine',
    notes: [
      `From POST to the terminal event, minus the same image by pipeline and encoder alone in one process; ${images} images of 64 × 64 and 4 steps, one at a time, alternating. The minimal server stores the request in Redis, messages one other process, and ends.`,
      'The aim is 5 ms added at p50, and 15 ms at p99.',
      'The limit: a request wakes the API, Redis, the batch-former, the worker, its engine, the worker and the API again, one after the other. Work after a wake-up costs several times what it costs a busy process (docs/benchmarks/added-latency-cpu.md). The minimal server, with one process and one helper, already takes most of the aim. Fewer wake-ups would need fewer processes, which isolate crashes and blocked engines.',
      'Phases use the timestamps of the events, which are whole milliseconds. The first step includes text encoding, the last one decoding and encoding.',
    ],
    tables: [
      percentileTable('From POST to the terminal event, ms (less is better)', {
        whole,
        bare,
        added,
        'a server that does next to nothing': least,
      }),
      percentileTable(
        'Where it goes, ms (less is better)',
        Object.fromEntries(phaseNames.map((name, at) => [name, phases.map((times) => times[at]!)])),
      ),
    ],
  });
}, 600_000);
