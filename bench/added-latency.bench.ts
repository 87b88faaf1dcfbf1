/**
 * What the system adds to a picture on an idle machine: from POST to the terminal event, minus the same picture made by
 * the pipeline and the encoder alone in one process. Both take turns, one picture each; the picture is small and takes few
 * steps, so that the difference does not drown in the noise of the inference. A server that does next to nothing takes its
 * turn, too: what the same client needs for that is the least that there is.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { loadPipeline } from '@darkroom/diffusion';
import { encodePicture } from '@darkroom/imaging';
import { inject, it } from 'vitest';
import { type ServerEvent, stream, submit } from '../test/e2e/client.ts';
import { startSystem, stopSystem } from '../test/e2e/system.ts';
import { publish } from './publish.ts';
import { percentileTable } from './table.ts';

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

const phaseNames = ['POST to stored', 'stored to leased', 'leased to stored', 'end to client'];

/** By the events' own times, in whole milliseconds. */
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

it('milliseconds from POST to the terminal event, less inference and encoding', async () => {
  const pipeline = await loadPipeline({ directory: 'models/emoji-sd' });
  const system = await startSystem();
  const server = fork('bench/least-server.mjs', [inject('redisUrl')], { execArgv: [] });
  const [{ url: leastUrl }] = (await once(server, 'message')) as [{ url: string }];
  const least: number[] = [];
  const bare: number[] = [];
  const whole: number[] = [];
  const phases: number[][] = [];
  try {
    for (let seed = 0; seed < pictures + 20; seed++) {
      const begin = performance.now();
      const [row] = await pipeline.createRows({ id: 'bare', input: { ...input, seed } });
      for (let step = 0; step < 4; step++) await pipeline.step([row!]);
      await encodePicture(await pipeline.finish(row!), { outputFormat: 'png', outputCompression: 100 });
      const middle = performance.now();
      const events = await stream(system.url, await submit(system.url, { ...body, seed }));
      const end = performance.now();
      await stream(leastUrl, await submit(leastUrl, { ...body, seed }));
      const last = performance.now();
      // The first ones warm up both.
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
    title: 'What the system adds to a picture on an idle machine',
    notes: [
      `From POST to the terminal event, less the same picture by pipeline and encoder alone in one process; ${pictures} pictures of 64 × 64 and 4 steps, one at a time, in turns. A server that does next to nothing answers, asks Redis and another process, and ends.`,
      'The aim is 5 ms added at p50, and 15 ms at p99.',
      'The limit: a request wakes the API, Redis, the former, the worker, its engine, the worker and the API again, one after the other. Each was asleep, and what it does then costs several times what it costs who is busy (docs/benchmarks/added-latency-cpu.md). A server of one process and one helper takes most of the aim already. Fewer wake-ups would mean fewer processes, and those are what a crash or a blocked engine leaves alone.',
      'Phases are by the times of the events, which are whole milliseconds. The first step has the text encoding in it, the last one decoding and encoding.',
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
