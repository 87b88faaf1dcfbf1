/** The commands and programs of README.md and docs/requests.md, run unchanged. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { runSection } from './document-programs.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();

const png = { format: 'png', width: 128, height: 128 };

it("README.md: OpenAI's SDK in five lines and curl in four", async () => {
  const { outputs, directory } = await runSection('README.md', 'Start', system.url);
  expect(outputs).toHaveLength(2);
  expect(outputs[1]).toMatch(/event: succeeded\n.*data: \[DONE\]\n/s);
  for (const name of ['apple.png', 'penguin.png'])
    expect(await sharp(join(directory, name)).metadata()).toMatchObject(png);
});

it('docs/requests.md: submit', async () => {
  const { outputs } = await runSection('docs/requests.md', 'Submit', system.url);
  const urls = { self: expect.any(String), events: expect.any(String), cancel: expect.any(String) };
  expect(outputs.map((output) => JSON.parse(output) as object)).toMatchObject([
    { request_id: expect.stringMatching(/^emoji-sd-/), status: 'queued', is_possible: true, urls },
  ]);
});

it('docs/requests.md: follow, poll, fetch, cancel, and wait with an idempotency key', async () => {
  const { outputs, directory } = await runSection('docs/requests.md', 'Follow, poll, fetch, cancel', system.url);
  expect(outputs[0]).toMatch(/event: succeeded\n.*\[DONE\].*event: succeeded\n.*\[DONE\].*"code":"request_ended"/s);
  expect(await sharp(join(directory, 'image.png')).metadata()).toMatchObject(png);
  expect(JSON.parse(outputs[1]!)).toMatchObject({ status: 'succeeded' });
});

it('docs/requests.md: list requests, pin one, and download its images as a ZIP file', async () => {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', prefer: 'wait=60' } };
  await fetch(`${system.url}/v1/predict`, { ...init, body: JSON.stringify({ model: 'emoji-sd', prompt: 'a fox' }) });
  const { outputs, directory } = await runSection('docs/requests.md', 'List, retain, download', system.url);
  expect(JSON.parse(outputs[0]!)).toMatchObject({ object: 'list', data: [{ urls: {} }, { urls: {} }] });
  const [pinned, unpinned] = outputs[1]!.split(/(?<=\})(?=\{)/).map((output) => JSON.parse(output) as object);
  expect([pinned, unpinned]).toMatchObject([{ is_pinned: true }, { is_pinned: false }]);
  expect((await readFile(join(directory, 'images.zip'))).subarray(0, 4).toString('latin1')).toBe('PK\u0003\u0004');
});

it("docs/requests.md: OpenAI's SDK streams an image", async () => {
  const { directory } = await runSection('docs/requests.md', "OpenAI's SDK", system.url);
  // A preview may be dropped if the next is there already.
  expect(await sharp(join(directory, 'apple-20.png')).metadata()).toMatchObject(png);
});
