import { resolve } from 'node:path';
import type { OnnxSession } from '@darkroom/runtime';
import { expect, it } from 'vitest';
import { readModelDirectory } from '../model/model-directory.ts';
import { PromptEncoder } from './prompt-encoder.ts';

const directory = resolve(import.meta.dirname, '../../../../models/emoji-sd');

/** Creates an encoder on a graph that counts its calls and returns `length` numbers for each. */
async function createHarness(length: number) {
  const { textEncoders } = await readModelDirectory(directory);
  let calls = 0;
  const runForAll = () => {
    calls += 1;
    return Promise.resolve([{ data: new Float32Array(length), dims: [length] }]);
  };
  const session = { inputs: [], outputs: [], runForAll } as unknown as OnnxSession;
  const encoder = new PromptEncoder(textEncoders[0].tokenizer, session, ['x']);
  const callsFor = async (texts: readonly string[]): Promise<number> => {
    const before = calls;
    for (const text of texts) await encoder.encode(text);
    return calls - before;
  };
  return { encoder, callsFor };
}

const texts = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`);

it('caches the latest embeddings, and evicts the least recently used one', async () => {
  const { callsFor } = await createHarness(8);
  expect(await callsFor(texts(32))).toBe(32);
  expect(await callsFor(texts(32))).toBe(0);
  await callsFor(['text 0', 'new']);
  expect(await callsFor(['text 0', 'new', 'text 2'])).toBe(0);
  expect(await callsFor(['text 1'])).toBe(1);
});

it('caches fewer embeddings if they are large, and none larger than the cache', async () => {
  const megabyte = 2 ** 18;
  const { callsFor } = await createHarness(16 * megabyte);
  await callsFor(texts(5));
  expect(await callsFor(['text 1', 'text 2', 'text 3', 'text 4'])).toBe(0);
  expect(await callsFor(['text 0'])).toBe(1);
  const { callsFor: callsForLarge } = await createHarness(65 * megabyte);
  expect(await callsForLarge(['text', 'text'])).toBe(2);
});
