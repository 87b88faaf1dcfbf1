/** The commands and programs of docs/coming-from.md, run unchanged. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { runSection as runDocumentSection } from './document-programs.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();

const runSection = (heading: string) => runDocumentSection('docs/coming-from.md', heading, system.url);

it("docs/coming-from.md: CogView4's server", async () => {
  const { outputs } = await runSection("CogView4's server");
  const frames = outputs[0]!.trim().split('\n\n');
  expect(frames.pop()).toBe('data: [DONE]');
  const parsed = frames.map((frame) => JSON.parse(frame.slice('data: '.length)) as Record<string, unknown>);
  // The preview of a step may be dropped if the next is there already.
  const partial = parsed.slice(0, -1).map(({ step }) => step as number);
  expect(partial[0]).toBe(1);
  expect(partial.length).toBeGreaterThan(5);
  expect(partial).toEqual(partial.toSorted((left, right) => left - right));
  expect(parsed.map(({ is_final }) => is_final)).toEqual([...partial.map(() => false), true]);
  expect(Object.keys(parsed[0]!)).toEqual(expect.arrayContaining(['total_steps', 'chunk_index', 'total_chunks']));
});

it("docs/coming-from.md: Falcon's REST front end", async () => {
  const { outputs } = await runSection("Falcon's REST front end");
  expect(outputs.map((output) => JSON.parse(output) as object)).toMatchObject([
    { choices: [{ message: { role: 'assistant', content: expect.stringContaining(' background') } }] },
    { full_text: expect.any(String), token_ids: expect.any(Array) },
  ]);
});

it('docs/coming-from.md: VLM-GPT', async () => {
  const { outputs } = await runSection('VLM-GPT');
  expect(JSON.parse(outputs[0]!)).toMatchObject({
    status: 'succeeded',
    texts: [{ text: expect.stringMatching(/^\w+/) }],
    finish_reasons: ['stop'],
    usage: { completion_tokens: expect.any(Number), prompt_tokens: expect.any(Number) },
  });
});

it('docs/coming-from.md: diffulex.server', async () => {
  const { outputs } = await runSection('diffulex.server');
  const names = [...outputs[0]!.matchAll(/^event: (?<name>.*)$/gm)].map(({ groups }) => groups!['name']);
  expect(new Set(names)).toEqual(new Set(['buffer_snapshot', 'final']));
  expect(outputs[0]).toMatch(/"text":"[^"]*░/);
  expect(outputs[0]!.trim().endsWith('data: [DONE]')).toBe(true);
});

it("docs/coming-from.md: vLLM-omni's executors", async () => {
  const { outputs } = await runSection("vLLM-omni's executors");
  expect(outputs[0]).toBe('emoji-sd true 0\n');
  expect(JSON.parse(outputs[1]!)).toMatchObject({ answers: [{ state: 'ready', healthy: true }] });
});

it('docs/coming-from.md: ComfyUI', async () => {
  const { outputs, directory } = await runSection('ComfyUI');
  const events = outputs[0]!.trim().split('\n');
  expect(events.filter((event) => event === 'event: image')).toHaveLength(2);
  expect(events.at(-1)).toBe('event: succeeded');
  expect(await sharp(await readFile(join(directory, 'fox.png'))).metadata()).toMatchObject({ width: 128, height: 128 });
});

it('docs/coming-from.md: a BullMQ queue', async () => {
  const { outputs } = await runSection('A BullMQ queue of your own');
  expect(outputs[0]).toMatch(/^\d+ of 10\n/);
  expect(outputs[0]).toMatch(/\nsucceeded \/v1\/predict\/emoji-sd-\w+\/images\/0\n$/);
});

it('docs/coming-from.md: the tests above run every code block', async () => {
  const document = await readFile(new URL('../../docs/coming-from.md', import.meta.url), 'utf8');
  expect(document.match(/^```\w/gm)).toHaveLength(9);
});
