/** The buffers of a graph with GroupQueryAttention; what is written with it, tiny-graphs.test.ts says. */
import { join, resolve } from 'node:path';
import { loadOnnxSession } from '@darkroom/runtime';
import { describe, expect, it } from 'vitest';
import { checkDeterminism } from './check-determinism.ts';
import { SharedDecoder } from './shared-decoder.ts';

const directory = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text/group-query');

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
      [1, 8],
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

  it('give memory back that a long row needed, and keep what the others have', async () => {
    const decoder = await open();
    const short = Array.from({ length: 3 }, () => decoder.createCache());
    for (const [row, cache] of short.entries()) await decoder.run([read(cache, [1 + row, 2, 3, 4])]);
    const before = (await decoder.run(short.map((cache) => ({ ...read(cache, [5]), keeps: false })))).map((one) => [
      ...one,
    ]);
    const long = decoder.createCache();
    await decoder.run([
      read(
        long,
        Array.from({ length: 400 }, (_, at) => 1 + (at % 63)),
      ),
    ]);
    expect(decoder.roomOf()).toBeGreaterThanOrEqual(400);
    decoder.releaseCache(long);
    for (let turn = 0; turn < 600 && decoder.roomOf() > 64; turn++)
      await decoder.run(short.map((cache) => ({ ...read(cache, [5]), keeps: false })));
    expect(decoder.roomOf()).toBe(64);
    const after = await decoder.run(short.map((cache) => ({ ...read(cache, [5]), keeps: false })));
    expect(after.map((one) => [...one])).toEqual(before);
    await decoder.dispose();
  });
});
