/** Safety checker, moderation (JUDGE) and upscaler in a whole system. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSafetyChecker, writeUpscaler } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ended, poll, stream, submit, postJson } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

const root = new URL('../../', import.meta.url).pathname;

let folder: string;
let system: System;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'darkroom-checks-'));
  const directory = join(folder, 'checked');
  await cp(join(root, 'models/emoji-sd'), directory, { recursive: true });
  await rm(join(directory, 'upscaler_x2'), { recursive: true, force: true });
  writeSafetyChecker(directory);
  writeUpscaler(directory, 2);
  const page = await readFile(join(root, 'docs/judges.md'), 'utf8');
  await writeFile(join(folder, 'judge.mjs'), /```js\n(?<code>.*?)```/s.exec(page)!.groups!['code']!);
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  const environment = { MODEL_DIR: directory, NUM_THREADS: '1' };
  await Promise.all([
    system.start('worker', environment),
    system.start('worker', { ...environment, MODEL_ID: 'judged', JUDGE: join(folder, 'judge.mjs') }),
    system.start('worker', { ...environment, MODEL_ID: 'refused', SAFETY_CHECKER: 'refuse' }),
  ]);
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await rm(folder, { recursive: true });
});

const red = 'a cat on a red background';
const blue = 'a cat on a blue background';
const body = (prompt: string, changes: object = {}) => ({
  model: 'checked',
  prompt,
  size: '64x64',
  num_inference_steps: 4,
  preview: { every: 1 },
  seed: 7,
  ...changes,
});

it('reports nsfw_content_detected for each image, sends no previews, and counts upscaling as a step', async () => {
  const id = await submit(system.url, body(red, { n: 2, upscale: 2 }));
  const events = await stream(system.url, id);
  expect(events.filter(({ data }) => data.includes('"preview"'))).toEqual([]);
  const progress = events.filter(({ event }) => event === 'progress').map(({ data }) => JSON.parse(data) as object);
  expect(new Set(progress.map((parsed) => (parsed as { total_steps: number }).total_steps))).toEqual(new Set([5]));
  const request = await poll(system.url, id);
  expect(request).toMatchObject({
    status: 'succeeded',
    step: 10,
    total_steps: 10,
    images: [
      { width: 128, height: 128, nsfw_content_detected: true },
      { width: 128, height: 128, nsfw_content_detected: true },
    ],
  });
  const good = await submit(system.url, body(blue));
  expect(await ended(system.url, good)).toBe('succeeded');
  expect(await poll(system.url, good)).toMatchObject({ images: [{ width: 64, nsfw_content_detected: false }] });
});

it('refuses flagged images with content_policy_violation when SAFETY_CHECKER is refuse', async () => {
  const answer = await postJson(`${system.url}/v1/images/generations`, {
    model: 'refused',
    prompt: red,
    size: '64x64',
    num_inference_steps: 4,
  });
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'content_policy_violation' } }]);
  const models = (await (await fetch(`${system.url}/v1/models`)).json()) as { data: { id: string }[] };
  const refusing = models.data.find(({ id }) => id === 'refused');
  expect(refusing).toMatchObject({ safety_checker: 'refuse', upscales: [2] });
});

it('refuses prompts and images with the reasons of the moderation module of docs/judges.md', async () => {
  const errorOf = async (prompt: string) => {
    const id = await submit(system.url, body(prompt, { model: 'judged' }));
    expect(await ended(system.url, id)).toBe('failed');
    return (await poll(system.url, id))['error'];
  };
  const code = 'content_policy_violation';
  const noDragons = 'the prompt is refused here: judged draws no dragons';
  expect(await errorOf('a dragon on a blue background')).toEqual({ code, message: noDragons });
  // The safety checker has replaced the image by black.
  expect(await errorOf(red)).toEqual({ code, message: 'image 0 is refused here: there is nothing to see' });
  const id = await submit(system.url, body(blue, { model: 'judged' }));
  expect(await ended(system.url, id)).toBe('succeeded');
});
