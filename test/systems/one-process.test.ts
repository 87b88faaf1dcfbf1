/** The processes of `npm start`: everything but the worker in one process, and one worker for all models. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ended, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';
import { startReceiver, typesOf, untilAllDelivered } from '../e2e/webhook-receiver.ts';

it('serves requests, delivers webhooks, recovers from a killed worker, and exits with 0', async () => {
  const environment = { WEBHOOK_ALLOW_PRIVATE: 'true', METRICS_PORT: '0' };
  const system = await openSystem({ parts: ['light', 'worker'], environment });
  const light = system.part('light');
  const receiver = await startReceiver({ url: light.url });
  const ask = { prompt: 'a red apple on a white background', preview: 'off', webhook_url: receiver.url };
  const quick = await submit(light.url, { ...ask, num_inference_steps: 2 });
  expect(await ended(light.url, quick)).toBe('succeeded');
  // The combined process includes a janitor, which requeues the killed worker's request.
  const long = await submit(light.url, { ...ask, num_inference_steps: 40 });
  await system.part('worker').kill();
  await system.start('worker');
  expect(await ended(light.url, long)).toBe('succeeded');
  await untilAllDelivered(system);
  expect([quick, long].map((id) => typesOf(receiver, id).at(-1))).toEqual(['request.succeeded', 'request.succeeded']);
  await light.stop();
  expect([light.process.exitCode, light.stderr]).toEqual([0, '']);
});

function childrenOf(pid: number): number[] {
  return execFileSync('pgrep', ['-P', `${pid}`], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map(Number);
}

/** Returns which large native libraries a process has mapped into memory. */
function librariesOf(pid: number): string[] {
  const maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
  return ['onnxruntime', 'libvips'].filter((name) => maps.includes(name));
}

it('loads native libraries only in the processes that need them, with one engine per model', async () => {
  const MODEL_DIRS = 'models/emoji-sd,models/emoji-writer,models/emoji-writer-diffusion';
  const system = await openSystem({ parts: ['light', { name: 'worker', environment: { MODEL_DIRS } }] });
  const { url } = system.part('light');
  const worker = system.part('worker').process.pid!;
  const engines = childrenOf(worker);
  expect(engines.map(librariesOf)).toEqual([['onnxruntime'], ['onnxruntime'], ['onnxruntime']]);
  expect(librariesOf(worker)).toEqual([]);
  const prompt = 'a red apple on a white background';
  expect(await ended(url, await submit(url, { prompt, num_inference_steps: 2 }))).toBe('succeeded');
  expect(librariesOf(worker)).toEqual(['libvips']);
});
