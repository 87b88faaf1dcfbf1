/** A tiny random model with GroupQueryAttention, against what transformers wrote: tools/golden/record-group-query.py. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { loadOnnxSession } from '@darkroom/runtime';
import type { TextInput } from '@darkroom/kinds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadTextPipeline } from '../pipelines/load-text-pipeline.ts';
import type { TextPipeline } from '../pipelines/text-pipeline.ts';
import { differenceOf, inCompany, randomInput, textInput, type TextResult, TextTable } from '../testing/text-table.ts';
import { checkDeterminism } from './check-determinism.ts';
import { SharedDecoder } from './shared-decoder.ts';

const directory = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text/group-query');
const { cases } = JSON.parse(readFileSync(join(directory, 'greedy.json'), 'utf8')) as {
  cases: { prompt: number[]; tokens: number[] }[];
};

let pipeline: TextPipeline;
beforeAll(async () => {
  pipeline = await loadTextPipeline({ directory, threads: 1, stepTokens: 16 });
});
afterAll(() => pipeline.dispose());

const inputOf = (number: number): TextInput => {
  const input = randomInput(number, cases[4]!.prompt);
  return { ...input, logprobs: 2, prompt: input.prompt.map((id) => 1 + (id % 63)) };
};

describe('text of a graph with shared buffers', () => {
  it('is that of transformers, token for token, alone', async () => {
    for (const { prompt, tokens } of cases)
      expect((await new TextTable(pipeline).write(textInput({ prompt }))).tokens).toEqual(tokens);
  });

  it('is the same for all together', async () => {
    const table = new TextTable(pipeline);
    for (const [at, { prompt }] of cases.entries()) {
      await table.join(`${at}`, textInput({ prompt }));
      for (let turn = 0; turn < 3; turn++) await table.turn();
    }
    await table.run();
    expect(cases.map((_, at) => table.results.get(`${at}`)!.tokens)).toEqual(cases.map(({ tokens }) => tokens));
  });

  it('has the bytes that it has alone in any company, and from every checkpoint', async () => {
    expect(pipeline.card.deterministic).toEqual({ is: true });
    const alone: TextResult[] = [];
    for (let at = 0; at < 40; at++) alone.push(await new TextTable(pipeline).write(inputOf(at)));
    for (let round = 0; round < 3; round++) {
      const together = await inCompany(pipeline, { seed: round, inputOf, alone });
      expect(together.map((one, at) => differenceOf(one, alone[at]!))).toEqual(alone.map(() => ''));
    }
  });
});

const read = (cache: ReturnType<SharedDecoder['createCache']>, ids: number[]) => ({
  cache,
  ids,
  keeps: true,
  logitsFrom: 0,
});

const shape = { tensors: 4, heads: 2, width: 16 };
const open = async () => {
  const session = await loadOnnxSession({ file: join(directory, 'onnx/model.onnx'), threads: 1 });
  return new SharedDecoder({ session, vocabularySize: 64, shape });
};

describe('shared buffers', () => {
  it('never have a single query', async () => {
    const session = await loadOnnxSession({ file: join(directory, 'onnx/model.onnx'), threads: 1 });
    const calls: (readonly number[])[] = [];
    const runForAll: typeof session.runForAll = (feeds, ...rest) => {
      calls.push(feeds['input_ids']!.dims);
      return session.runForAll(feeds, ...rest);
    };
    const noting = new SharedDecoder({ session: { ...session, runForAll }, vocabularySize: 64, shape });
    const cache = noting.createCache();
    await noting.run([read(cache, [5])]);
    await noting.run([read(cache, [5, 6, 7, 8, 9, 10, 11])]);
    expect(calls).toEqual([
      [2, 1],
      [1, 4],
      [1, 3],
    ]);
    expect(cache.length).toBe(8);
    await noting.dispose();
  });

  it('keep the bits of rows, if what was written one by one is read so again', async () => {
    const decoder = await open();
    const limits = { vocabularySize: 64, maxModelTokens: 512, width: 1, isCausal: true };
    expect(await checkDeterminism({ decoder, ...limits })).toEqual({
      deterministic: { is: true },
      singlesAsPieces: false,
    });
    await decoder.dispose();
  });

  it('keep what each row has, whoever comes, leaves, grows and moves', async () => {
    const decoder = await open();
    const texts = Array.from({ length: 7 }, (_, row) =>
      Array.from({ length: 90 }, (_, at) => 1 + ((row * 37 + at * 11) % 63)),
    );
    const caches = texts.map(() => decoder.createCache());
    for (const [row, cache] of caches.entries()) await decoder.run([read(cache, texts[row]!.slice(0, 3 + row))]);
    // Single tokens of changing sets of rows, one of which is replaced again and again.
    for (let turn = 0; turn < 60; turn++) {
      const present = caches.filter((_, row) => (turn >> (row % 3)) % 2 === 0);
      if (turn % 7 === 6) {
        const row = turn % 5;
        decoder.releaseCache(caches[row]!);
        caches[row] = decoder.copyCache(caches[6]!, 2);
        texts[row] = [...texts[6]!.slice(0, 2), ...texts[row]!.slice(2)];
      } else await decoder.run(present.map((cache) => read(cache, [texts[caches.indexOf(cache)]![cache.length]!])));
    }
    const last = await decoder.run(caches.map((cache) => ({ ...read(cache, [5]), keeps: false })));
    const logits = last.map((each) => each.slice());
    expect(new Set(caches.map(({ length }) => length)).size).toBeGreaterThan(3);
    const fresh = await open();
    for (const [row, { length }] of caches.entries()) {
      const cache = fresh.createCache();
      await fresh.run([read(cache, texts[row]!.slice(0, length))]);
      const [expected] = await fresh.run([{ ...read(cache, [5]), keeps: false }]);
      // Pieces have other last bits than single tokens.
      const differences = expected!.map((value, id) => Math.abs(value - logits[row]![id]!));
      expect(Math.max(...differences)).toBeLessThan(1e-4);
      fresh.releaseCache(cache);
    }
    await decoder.dispose();
    await fresh.dispose();
  });
});
