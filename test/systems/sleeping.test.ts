/** A worker that sleeps, as a process with a real model: its memory is free meanwhile, and the next request wakes it. */
import { execFileSync } from 'node:child_process';
import { statusSchema } from '../../apps/api/src/v1/status.ts';
import { expect, it } from 'vitest';
import { make, picture, stream, submit, typesOf } from '../e2e/client.ts';
import { openSystem, type Part, patience } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', seed: 7, num_inference_steps: 4, preview: 'off' };

/** Processes that a worker has started. */
function childrenOf({ process: { pid } }: Part): string[] {
  try {
    return execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
      .trim()
      .split('\n');
  } catch {
    return [];
  }
}

async function statusOf(url: string) {
  return statusSchema.parse(await (await fetch(`${url}/status`)).json());
}

it('has no engine while it sleeps; the next request wakes it, says so, and makes the same picture', async () => {
  const system = await openSystem({
    parts: ['api', 'batch-former', 'janitor', { name: 'worker', environment: { SLEEP_AFTER_S: '1' } }],
    environment: patience,
  });
  const { url } = system;
  const worker = system.part('worker');
  const before = await make(url, quick);
  await expect.poll(() => childrenOf(worker)).toEqual([]);
  await expect.poll(async () => (await statusOf(url)).workers).toMatchObject([{ state: 'asleep', loaded: false }]);
  expect((await fetch(`${worker.metricsUrl}/ready`)).status).toBe(200);
  const id = await submit(url, quick);
  expect(typesOf(await stream(url, id))).toContain('loading');
  expect(await picture(url, id)).toEqual(before);
});
