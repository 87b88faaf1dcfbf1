/** A Redis that comes back empty: nothing can be done for the requests that were in it, and everything for the next. */
import { readFileSync } from 'node:fs';
import { allKeys, removeKeys } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { ended, poll, submit } from './client.ts';
import { openSystem } from './system.ts';

it('workers bring their models and themselves back, with nothing started again', async () => {
  const system = await openSystem();
  const lost = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 150 });
  await expect.poll(async () => (await poll(system.url, lost)).status).toBe('running');
  await removeKeys(system.store);
  expect(await poll(system.url, lost)).toMatchObject({ error: { code: 'request_not_found' } });
  const health = async (): Promise<unknown> => (await fetch(`${system.url}/health`)).json();
  await vi.waitUntil(async () => ((await health()) as { status: string }).status === 'ok', { timeout: 20_000 });
  const id = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 3 });
  expect(await ended(system.url, id)).toBe('succeeded');
  // What was under way then wrote nothing any more.
  expect((await allKeys(system.store)).filter((key) => key.includes(lost))).toEqual([]);
  const fatal = readFileSync(system.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"level":"fatal"'));
  expect(fatal).toEqual([]);
});
