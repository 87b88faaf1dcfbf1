/** Tests emoji-writer against transformers with the same weights: tools/golden/record-text.py. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { textAfter } from '@darkroom/core';
import type { TextInput, TokenLogprob } from '@darkroom/kinds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import {
  differenceOf,
  writeInBatches,
  randomInput,
  textInput,
  type TextResult,
  TextTable,
} from '../testing/text-table.ts';
import type { TextRow } from '../row/text-row.ts';
import { loadTextPipeline } from './load-text-pipeline.ts';
import type { TextPipeline } from './text-pipeline.ts';

interface Case {
  messages: { role: string; content: string }[];
  prompt: number[];
  tokens: number[];
  text: string;
}

const root = resolve(import.meta.dirname, '../../../..');
const directory = resolve(root, 'models/emoji-writer');
const vectors = resolve(root, 'tools/golden/vectors/emoji-writer-greedy.json');
const { cases } = JSON.parse(readFileSync(vectors, 'utf8')) as { cases: Case[] };
const { codec } = await readTextModelDirectory(directory);
const end = 2;

let pipeline: TextPipeline;
beforeAll(async () => {
  pipeline = await loadTextPipeline({ directory, threads: 1, stepTokens: 16 });
});
afterAll(() => pipeline.dispose());

const promptOf = (text: string) =>
  codec.encode(codec.renderChat([{ role: 'user', content: text }]), { addSpecialTokens: false });
const wish = promptOf('an animal that lives in the forest');

describe('greedy text', () => {
  it('equals that of transformers, token by token, alone', async () => {
    for (const { messages, prompt, tokens, text } of cases) {
      expect(codec.encode(codec.renderChat(messages), { addSpecialTokens: false })).toEqual(prompt);
      const result = await new TextTable(pipeline).write(textInput({ prompt }));
      expect(result).toMatchObject({ tokens, text });
      expect(result.facts).toEqual({
        finish_reason: 'stop',
        prompt_tokens: prompt.length,
        completion_tokens: tokens.length,
        cached_tokens: expect.any(Number) as number,
        calls: tokens.length,
      });
    }
  });

  it('equals it in a batch', async () => {
    const table = new TextTable(pipeline);
    for (const [at, { prompt }] of cases.entries()) {
      await table.join(`${at}`, textInput({ prompt }));
      if (at % 3 === 0) await table.tick();
    }
    await table.run();
    expect(cases.map((_, at) => table.results.get(`${at}`)!.tokens)).toEqual(cases.map(({ tokens }) => tokens));
    expect(Math.max(...table.calls.map(({ names }) => names.length))).toBeGreaterThan(8);
  });
});

/** Returns a request of any kind, determined by the number. */
function inputOf(number: number): TextInput {
  const input = randomInput(number, wish);
  return number % 3 === 0 ? input : { ...input, logprobs: 3 };
}

describe('rows', () => {
  const count = 36;

  it('have the same bytes in any batch as alone, and from every checkpoint', async () => {
    const alone: TextResult[] = [];
    for (let at = 0; at < count; at++) alone.push(await new TextTable(pipeline).write(inputOf(at)));
    for (let round = 0; round < 2; round++) {
      const together = await writeInBatches(pipeline, { seed: round, inputOf, alone });
      expect(together.map((one, at) => differenceOf(one, alone[at]!))).toEqual(alone.map(() => ''));
    }
  });

  it('emit contiguous deltas that add up to the text', async () => {
    for (let at = 0; at < 20; at++) {
      const { events, text, tokens } = await new TextTable(pipeline).write(inputOf(at));
      const deltas = events.flatMap((event) => (event.type === 'delta' ? [event] : []));
      const whole = deltas.reduce((before, delta) => textAfter(before, delta), '');
      expect(whole).toBe(text);
      const ids = deltas.map(({ facts }) => facts!['ids']).join('');
      const emitted = tokens.at(-1) === end && !inputOf(at).ignoreEos ? tokens.slice(0, -1) : tokens;
      expect(ids).toBe(emitted.map((id) => `${id},`).join(''));
    }
  });

  it('resume from a checkpoint, and report progress from there', async () => {
    const input = textInput({ prompt: wish, temperature: 1, seed: 5, maxTokens: 30, ignoreEos: true });
    const whole = await new TextTable(pipeline).write(input);
    for (const checkpoint of whole.checkpoints) {
      const { events, text, facts } = await new TextTable(pipeline).write(input, checkpoint);
      expect(text).toBe(whole.text);
      expect(facts).toEqual(whole.facts);
      expect(events[0]).toEqual({ type: 'progress', done: checkpoint.done + 1, total: 30 });
    }
  });

  it('restart with an invalid checkpoint', async () => {
    const input = textInput({ prompt: wish });
    const whole = await new TextTable(pipeline).write(input);
    for (const text of ['', '{}', '{"tokens":[9000],"random":[1,2,3,4],"calls":0}'])
      expect(
        await new TextTable(pipeline).write(input, { done: 1, data: new TextEncoder().encode(text) }),
      ).toMatchObject({
        text: whole.text,
      });
  });
});

it('restarts with a checkpoint that has reached the limit without an end', async () => {
  const input = textInput({ prompt: wish, maxTokens: 3 });
  const checkpoint = JSON.stringify({ tokens: [68, 68, 68], random: [1, 2, 3, 4], calls: 3 });
  const { text } = await new TextTable(pipeline).write(input);
  expect(
    await new TextTable(pipeline).write(input, { done: 3, data: new TextEncoder().encode(checkpoint) }),
  ).toMatchObject({ text });
});

const open = (prefixCacheTokens: number) => loadTextPipeline({ directory, threads: 1, prefixCacheTokens });

describe('the prefix cache', () => {
  const chat = cases.slice(-9, -6);

  it('spares prompts with a known prefix the reading, without changing their text', async () => {
    const retaining = await open(1000);
    const cached = [];
    for (const { prompt, tokens } of chat) {
      const result = await new TextTable(retaining).write(textInput({ prompt }));
      expect(result.tokens).toEqual(tokens);
      cached.push(result.facts.cached_tokens);
    }
    // Each prompt starts with the previous chat, except the end token, which the model never read.
    const [first, second] = chat.map(({ prompt, tokens }) => prompt.length + tokens.length - 1);
    expect(cached).toEqual([0, first, second]);
    await retaining.dispose();
  });

  it('is not shared between owners, during a request or afterwards', async () => {
    const retaining = await open(1000);
    const table = new TextTable(retaining);
    await table.join('alice', textInput({ prompt: wish, maxTokens: 8, ignoreEos: true }));
    await table.tick();
    await table.join('bob', textInput({ prompt: wish, maxTokens: 8, ignoreEos: true }), undefined, { owner: 'bob' });
    await table.run();
    const afterwards = await new TextTable(retaining).write(textInput({ prompt: wish, maxTokens: 8 }), undefined, {
      owner: 'carol',
    });
    const again = await new TextTable(retaining).write(textInput({ prompt: wish, maxTokens: 8 }), undefined, {
      owner: 'bob',
    });
    const results = [table.results.get('bob')!, afterwards, again];
    expect(results.map(({ facts }) => facts.cached_tokens)).toEqual([0, 0, wish.length - 1]);
    await retaining.dispose();
  });

  it('shares the prompt among all texts of a request', async () => {
    const retainingNone = await open(0);
    const table = new TextTable(retainingNone);
    await table.join('a', textInput({ prompt: wish, n: 4, temperature: 1, maxTokens: 8, ignoreEos: true }));
    await table.run();
    const readers = table.calls.flatMap(({ shape, names }) => (shape === 'read' ? [names] : []));
    expect(readers).toEqual([
      ['a/0', 'a/1', 'a/2', 'a/3'],
      ['a/1', 'a/2', 'a/3'],
    ]);
    // No earlier request had the prompt.
    const facts = [0, 1, 2, 3].map((index) => table.results.get(`a/${index}`)!.facts.cached_tokens);
    expect(facts).toEqual([0, 0, 0, 0]);
    const alone = textInput({ prompt: wish, temperature: 1, maxTokens: 8, ignoreEos: true, seed: 4 });
    expect(table.results.get('a/3')!.tokens).toEqual((await new TextTable(retainingNone).write(alone)).tokens);
    await retainingNone.dispose();
  });
});

it('counts every row as long as the longest, in fitsMemory', async () => {
  const small = await loadTextPipeline({ directory, threads: 1, memoryTokens: 300 });
  const rows = await small.createRows({ id: 'a', input: textInput({ prompt: wish, n: 8, maxTokens: 10 }) });
  const [long] = await small.createRows({ id: 'b', input: textInput({ prompt: wish, maxTokens: 80 }) });
  const [first, ...others] = rows as [TextRow, ...TextRow[]];
  expect(small.fitsMemory(first, others)).toBe(true);
  expect(small.fitsMemory(first, [long!])).toBe(true);
  expect(small.fitsMemory(long!, others.slice(0, 2))).toBe(true);
  expect(small.fitsMemory(long!, others)).toBe(false);
  for (const row of [...rows, long!]) small.release(row);
  await small.dispose();
});

describe('a long prompt', () => {
  const long = Array.from({ length: 200 }, (_, at) => 4 + at);

  it('is read in chunks, between which other rows write', async () => {
    const table = new TextTable(pipeline);
    await table.join('writes', textInput({ prompt: wish, ignoreEos: true, maxTokens: 60 }));
    await table.tick();
    await table.tick();
    await table.join('reads', textInput({ prompt: long, maxTokens: 2 }));
    const before = table.calls.length;
    while (!table.results.has('reads')) await table.tick();
    const calls = table.calls.slice(before).map(({ shape }) => shape);
    // 200 tokens in chunks of at most 16, each followed by a step of the writing row.
    expect(calls.slice(0, 26)).toEqual(Array.from({ length: 26 }, (_, at) => (at % 2 === 0 ? 'write' : 'read')));
  });
});

describe('a text', () => {
  it('ends at its limit in mid-sentence', async () => {
    const { tokens, facts } = await new TextTable(pipeline).write(textInput({ prompt: wish, maxTokens: 3 }));
    expect([tokens.length, facts.finish_reason, facts.completion_tokens]).toEqual([3, 'length', 3]);
  });

  it('ends at the model limit', async () => {
    const prompt = Array.from({ length: 250 }, (_, at) => 4 + at);
    const { tokens, facts } = await new TextTable(pipeline).write(
      textInput({ prompt, maxTokens: 24, ignoreEos: true }),
    );
    expect([tokens.length, facts.finish_reason]).toEqual([6, 'length']);
  });

  it.each([
    [' fox', 'a'],
    ['ox on a gr', 'a f'],
    ['a', ''],
  ])('ends before the stop string %j, without emitting any of it', async (stop, text) => {
    const result = await new TextTable(pipeline).write(textInput({ prompt: wish, stop: ['never', stop] }));
    expect(result).toMatchObject({ text, facts: { finish_reason: 'stop', stop } });
    const emitted = result.events.flatMap((event) => (event.type === 'delta' ? [event.text] : []));
    expect(emitted.join('')).toBe(text);
    expect(result.facts.completion_tokens).toBe(result.tokens.length);
    const ids = result.events.flatMap((event) => (event.type === 'delta' ? [event.facts!['ids'] as string] : []));
    expect(codec.decode(ids.join('').split(',').filter(Boolean).map(Number)).startsWith(text)).toBe(true);
  });

  it('applies biases and penalties', async () => {
    const plain = await new TextTable(pipeline).write(textInput({ prompt: wish }));
    const banned = plain.tokens[1]!;
    const biased = await new TextTable(pipeline).write(textInput({ prompt: wish, logitBias: { [banned]: -100 } }));
    expect(biased.tokens).not.toContain(banned);
    const loop = textInput({ prompt: wish, ignoreEos: true, maxTokens: 60 });
    const kinds = async (input: TextInput) => new Set((await new TextTable(pipeline).write(input)).tokens).size;
    expect(await kinds({ ...loop, frequencyPenalty: 2 })).toBeGreaterThan(await kinds(loop));
  });

  it('reports log probabilities', async () => {
    const { events, tokens } = await new TextTable(pipeline).write(textInput({ prompt: wish, logprobs: 2 }));
    const lines = events.flatMap((event) => (event.type === 'delta' ? [event.facts!['logprobs'] as string] : []));
    const emitted = lines
      .join('')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TokenLogprob);
    expect(emitted.map(({ token }) => token)).toEqual(tokens.slice(0, -1).map((id) => codec.decode([id])));
    for (const { token, logprob, bytes, top } of emitted) {
      expect(top).toHaveLength(2);
      expect(top[0]).toEqual({ token, logprob, bytes });
      expect(logprob).toBeLessThanOrEqual(0);
    }
  });

  it('differs by output index and seed', async () => {
    const input = textInput({
      prompt: wish,
      temperature: 1.2,
      n: 3,
      seed: 2 ** 32 - 1,
      maxTokens: 40,
      ignoreEos: true,
    });
    const table = new TextTable(pipeline);
    await table.join('a', input);
    await table.run();
    const texts = [0, 1, 2].map((index) => table.results.get(`a/${index}`)!.text);
    expect(new Set(texts).size).toBe(3);
    // Seeds wrap around: the second output's is 0.
    expect((await new TextTable(pipeline).write({ ...input, n: 1, seed: 0 })).text).toBe(texts[1]);
  });
});

describe('a request', () => {
  it.each<[Partial<TextInput>, string]>([
    [{ prompt: [] }, 'prompt: '],
    [{ prompt: [1, 6144] }, 'prompt and logitBias: 6144 is not a token; the model has 6144'],
    [{ logitBias: { 9999: 1 } }, 'prompt and logitBias: 9999 is not a token'],
    [{ prompt: Array.from({ length: 256 }, () => 5) }, 'prompt: has 256 tokens, and the model supports 256'],
    [{ temperature: -1 }, 'temperature: '],
    [{ n: 0 }, 'n: '],
    [{ stop: [''] }, 'stop.0: '],
  ])('with %j is rejected', async (changes, message) => {
    await expect(
      pipeline.createRows({ id: 'a', input: textInput({ prompt: wish, ...changes }) }),
    ).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining(message) as string,
    });
  });
});
