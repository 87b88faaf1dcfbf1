/** Tests the buffers of a graph with GroupQueryAttention; tiny-graphs.test.ts tests the text written with them. */
import { join, resolve } from 'node:path';
import { type LoadedSession, loadOnnxSession, SplitSession } from '@darkroom/runtime';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { checkDeterminism } from './check-determinism.ts';
import { readTextModelDirectory } from '../model/text-model-directory.ts';
import type { Decoder, TokenCache } from './decoder.ts';
import { tokenIds } from './decoder-tokens.ts';
import { loadDecoder } from './load-decoder.ts';
import { PrefixCache } from './prefix-cache.ts';
import { SharedDecoder } from './shared-decoder.ts';

const directory = resolve(import.meta.dirname, '../../../../tools/golden/vectors/text/group-query');

const read = <Cache extends TokenCache>(cache: Cache, ids: number[]) => ({
  cache,
  ids,
  keeps: true,
  logitsFrom: 0,
});

const shape = { tensors: 4, heads: 2, width: 16 };
const open = async () => {
  const session = await loadOnnxSession({ file: join(directory, 'onnx/model.onnx'), threads: 1 });
  return sharedDecoder(session);
};
const sharedDecoder = (session: LoadedSession) => {
  const whole = new SplitSession([{ session, passedNames: [] }], new Map(), 'input_ids');
  return new SharedDecoder({ session: whole, tokens: tokenIds, vocabularySize: 64, shape });
};

describe('shared buffers', () => {
  it('are never called with a single query', async () => {
    const session = await loadOnnxSession({ file: join(directory, 'onnx/model.onnx'), threads: 1 });
    const calls: (readonly number[])[] = [];
    const runInto: typeof session.runInto = (feeds, into) => {
      calls.push(feeds['input_ids']!.dims);
      return session.runInto(feeds, into);
    };
    const noting = sharedDecoder({ ...session, runInto });
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

  it('keep the bits of rows, if tokens written one by one are reread one by one', async () => {
    const decoder = await open();
    const limits = { vocabularySize: 64, maxModelTokens: 512, width: 1, isCausal: true };
    expect(await checkDeterminism({ decoder, ...limits })).toEqual({
      deterministic: { is: true },
      singlesMatchChunks: false,
    });
    await decoder.dispose();
  });

  it('keep the contents of each row while rows come, leave, grow and move', async () => {
    const decoder = await open();
    const texts = Array.from({ length: 7 }, (_, row) =>
      Array.from({ length: 90 }, (_, at) => 1 + ((row * 37 + at * 11) % 63)),
    );
    const caches = texts.map(() => decoder.createCache());
    for (const [row, cache] of caches.entries()) await decoder.run([read(cache, texts[row]!.slice(0, 3 + row))]);
    // Step single tokens of changing sets of rows, and replace one row again and again.
    for (let tick = 0; tick < 60; tick++) {
      const present = caches.filter((_, row) => (tick >> (row % 3)) % 2 === 0);
      if (tick % 7 === 6) {
        const row = tick % 5;
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
      // Chunks and single tokens differ in their last bits.
      const differences = expected!.map((value, id) => Math.abs(value - logits[row]![id]!));
      expect(Math.max(...differences)).toBeLessThan(1e-4);
      fresh.releaseCache(cache);
    }
    await decoder.dispose();
    await fresh.dispose();
  });

  it('shrink after a long row has left, and keep the contents of others', async () => {
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
    expect(decoder.memoryOf()).toBeGreaterThanOrEqual(400);
    decoder.releaseCache(long);
    for (let tick = 0; tick < 600 && decoder.memoryOf() > 64; tick++)
      await decoder.run(short.map((cache) => ({ ...read(cache, [5]), keeps: false })));
    expect(decoder.memoryOf()).toBe(64);
    const after = await decoder.run(short.map((cache) => ({ ...read(cache, [5]), keeps: false })));
    expect(after.map((one) => [...one])).toEqual(before);
    await decoder.dispose();
  });
});

describe('retained caches', () => {
  const maxTokens = 4096;

  async function openKept() {
    const decoder = await open();
    onTestFinished(() => decoder.dispose());
    const prefixCache = new PrefixCache(decoder, maxTokens);
    for (let seed = 0; seed < 64; seed++) {
      const cache = decoder.createCache();
      const ids = Array.from({ length: 20 }, (_, at) => 1 + ((seed + at * (1 + (seed >> 3))) % 63));
      await decoder.run([read(cache, ids)]);
      prefixCache.add({ cache, ids, owner: 'alice', request: {} });
    }
    return { decoder, prefixCache };
  }

  it('are evicted before slots grow, to stay within the limit', async () => {
    const { decoder, prefixCache } = await openKept();
    expect([prefixCache.usedTokens, decoder.memoryOf()]).toEqual([maxTokens, 64]);
    const ids = Array.from({ length: 500 }, (_, at) => 1 + (at % 63));
    const long = decoder.createCache(ids.length);
    await decoder.run([read(long, ids)]);
    expect(decoder.memoryOf()).toBeGreaterThan(500);
    expect(prefixCache.usedTokens).toBeLessThanOrEqual(maxTokens);
    expect(prefixCache.usedTokens).toBeGreaterThan(0);
    const [after] = await decoder.run([{ ...read(long, [5]), keeps: false }]);
    const fresh = await open();
    const alone = fresh.createCache();
    await fresh.run([read(alone, ids)]);
    expect([...after!]).toEqual([...(await fresh.run([{ ...read(alone, [5]), keeps: false }]))[0]!]);
    await fresh.dispose();
  });
});

/** Counts the numbers that are copied between buffers during an action. */
async function countCopied<Value>(act: () => Promise<Value>): Promise<{ count: number; value: Value }> {
  const prototype = Object.getPrototypeOf(Float32Array.prototype) as Float32Array;
  const set = vi.spyOn(prototype, 'set');
  const value = await act();
  const count = set.mock.calls.reduce((sum, [from]) => sum + (from instanceof Float32Array ? from.length : 0), 0);
  set.mockRestore();
  return { count, value };
}

const openCut = async (): Promise<Decoder> => {
  const model = await readTextModelDirectory(join(directory, '../group-query-uncopied'));
  const { decoder } = await loadDecoder(model, { threads: 1, minPartBytes: 1 });
  onTestFinished(() => decoder.dispose());
  return decoder;
};
const idsOf = (count: number, seed: number) =>
  Array.from({ length: count }, (_, at) => 1 + ((seed * 7 + at * 11) % 63));
const prompt = (cache: TokenCache, ids: number[]) => ({ cache, ids, keeps: true, logitsFrom: ids.length - 1 });

describe('a call in parts', () => {
  it('has the same bits as in one part while other rows step, come, leave and grow in between', async () => {
    const decoder = await openCut();
    const ids = idsOf(61, 5);
    const expected = [...(await decoder.run([prompt(decoder.createCache(), ids)]))[0]!];
    const decode = await openCut();
    const writers = Array.from({ length: 3 }, () => decode.createCache());
    for (const [at, cache] of writers.entries()) await decode.run([prompt(cache, idsOf(9 + 8 * at, at))]);
    const cache = decode.createCache(ids.length);
    const call = decode.runByParts([prompt(cache, ids)]);
    const lengths: number[] = [];
    let found: readonly Float32Array[] | undefined;
    for (let part = 0; ; part++) {
      const { done, value } = await call.next();
      if (done === true) {
        found = value;
        break;
      }
      lengths.push(cache.length);
      // The other rows take its slot, and the buffers are resized.
      if (part > 0) decode.releaseCache(writers.shift()!);
      writers.push(decode.createCache());
      await decode.run([prompt(writers.at(-1)!, idsOf(40, part))]);
      for (let tick = 0; tick < 40; tick++) await decode.run(writers.map((each) => read(each, [5])));
    }
    expect([...found[0]!]).toEqual(expected);
    expect(lengths.length).toBeGreaterThanOrEqual(2);
    expect([Math.max(...lengths), cache.length]).toEqual([0, ids.length]);
    const [next] = await decode.run([read(cache, [7])]);
    const alone = decoder.createCache();
    await decoder.run([prompt(alone, ids)]);
    expect([...next!]).toEqual([...(await decoder.run([read(alone, [7])]))[0]!]);
  });

  it('has no effect if it is abandoned', async () => {
    const decoder = await openCut();
    const cache = decoder.createCache();
    await decoder.run([prompt(cache, idsOf(8, 1))]);
    const after = async () => [...(await decoder.run([{ ...read(cache, [5]), keeps: false }]))[0]!];
    const before = await after();
    const call = decoder.runByParts([prompt(cache, idsOf(20, 2))]);
    await call.next();
    await call.return([]);
    expect(cache.length).toBe(8);
    expect(await after()).toEqual(before);
  });

  it('moves a bounded number of tokens at a time when rows grow, and when a long one joins', async () => {
    const decoder = await openCut();
    const writers = Array.from({ length: 8 }, () => decoder.createCache());
    for (const [at, cache] of writers.entries()) await decoder.run([prompt(cache, idsOf(60, at))]);
    const copied: number[] = [];
    const note = async <Value>(act: () => Promise<Value>) => {
      const { count, value } = await countCopied(act);
      copied.push(count);
      return value;
    };
    const write = () => decoder.run(writers.map((cache) => read(cache, [5])));
    for (let tick = 0; tick < 100; tick++) await note(write);
    const long = decoder.createCache(300);
    for (let at = 0; at < 300; at += 20) {
      const call = decoder.runByParts([prompt(long, idsOf(20, at))]);
      for (;;) {
        const { done } = await note(() => call.next());
        await note(write);
        if (done === true) break;
      }
    }
    const numbersOfToken = shape.tensors * shape.heads * shape.width;
    expect(copied.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(1000 * numbersOfToken);
    expect(Math.max(...copied) / numbersOfToken).toBeLessThanOrEqual(128);
  });
});
