import { describe, expect, it } from 'vitest';
import { checkDeterminism } from './check-determinism.ts';
import type { Decoder, DecoderRead } from './decoder.ts';

interface ToyCache {
  length: number;
  sum: number;
}

/** A decoder with a single logit per position. `spoil` returns the error that a call's layout adds to it. */
function toy(
  spoil: (reads: readonly DecoderRead<ToyCache>[], read: DecoderRead<ToyCache>) => number,
): Decoder<ToyCache> {
  return {
    vocabularySize: 1,
    createCache: () => ({ length: 0, sum: 0 }),
    copyCache: () => expect.fail('nothing is copied'),
    runByParts: () => expect.fail('all are run as a whole'),
    memoryOf: ({ length }) => length,
    releaseCache: () => {},
    run(reads) {
      const logits = reads.map((read) => {
        const sum = read.ids.reduce((before, id) => (before * 31 + id) % 65_521, read.cache.sum) + spoil(reads, read);
        if (read.keeps) Object.assign(read.cache, { length: read.cache.length + read.ids.length, sum });
        return Float32Array.of(sum);
      });
      return Promise.resolve(logits);
    },
    dispose: () => Promise.resolve(),
  };
}

const check = (decoder: Decoder<ToyCache>, isCausal = true, maxModelTokens = 256) =>
  checkDeterminism({ decoder, vocabularySize: 100, maxModelTokens, width: 1, isCausal });

describe('checkDeterminism', () => {
  const yes = { is: true };

  it('reports determinism if no layout changes a row', async () => {
    expect(await check(toy(() => 0))).toEqual({ deterministic: yes, singlesMatchChunks: true });
  });

  it('reports rows that change with the longest row of a call', async () => {
    const spoiled = toy((reads) => (Math.max(...reads.map(({ cache }) => cache.length)) > 100 ? 0.5 : 0));
    const reason = 'the last bits of a row change with the rows that share its steps';
    expect(await check(spoiled)).toMatchObject({ deterministic: { is: false, reason } });
    // A limit of 100 tokens leaves the longest row out.
    expect(await check(spoiled, true, 100)).toMatchObject({ deterministic: yes });
  });

  it('reports rows that change with prompt chunks, unless prompts are always chunked alike', async () => {
    const spoiled = toy((_, { cache, ids }) => (cache.length > 0 && ids.length > 1 ? 0.5 : 0));
    const reason = 'the last bits of a row change with the chunks in which its tokens are read';
    expect(await check(spoiled)).toMatchObject({ deterministic: { is: false, reason } });
    expect(await check(spoiled, false)).toMatchObject({ deterministic: yes });
  });

  it('reports single tokens that are read with other rounding than chunks', async () => {
    const spoiled = toy((_, { ids, keeps }) => (keeps && ids.length === 1 ? 0.5 : 0));
    expect(await check(spoiled)).toEqual({ deterministic: yes, singlesMatchChunks: false });
  });
});
