import { describe, expect, it } from 'vitest';
import { checkDeterminism } from './check-determinism.ts';
import type { Decoder, DecoderRead } from './decoder.ts';

interface ToyCache {
  length: number;
  sum: number;
}

/** Logits of one number; `spoil` is how much a call's layout changes it. */
function toy(
  spoil: (reads: readonly DecoderRead<ToyCache>[], read: DecoderRead<ToyCache>) => number,
): Decoder<ToyCache> {
  return {
    vocabularySize: 1,
    createCache: () => ({ length: 0, sum: 0 }),
    copyCache: () => expect.fail('nothing is copied'),
    runByParts: () => expect.fail('all are run as a whole'),
    roomOf: ({ length }) => length,
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

describe('rows of a graph', () => {
  const yes = { is: true };

  it('keep their bits where nothing changes them', async () => {
    expect(await check(toy(() => 0))).toEqual({ deterministic: yes, singlesAsPieces: true });
  });

  it('do not where the longest row of a call does', async () => {
    const spoiled = toy((reads) => (Math.max(...reads.map(({ cache }) => cache.length)) > 100 ? 0.5 : 0));
    const reason = 'the last bits of a row change with the rows that share its steps';
    expect(await check(spoiled)).toMatchObject({ deterministic: { is: false, reason } });
    // There is no such row where there is no room for one.
    expect(await check(spoiled, true, 100)).toMatchObject({ deterministic: yes });
  });

  it('do not where pieces change them, unless they are always the same', async () => {
    const spoiled = toy((_, { cache, ids }) => (cache.length > 0 && ids.length > 1 ? 0.5 : 0));
    const reason = 'the last bits of a row change with the pieces in which its tokens are read';
    expect(await check(spoiled)).toMatchObject({ deterministic: { is: false, reason } });
    expect(await check(spoiled, false)).toMatchObject({ deterministic: yes });
  });

  it('keep them with care where single tokens are read in another way', async () => {
    const spoiled = toy((_, { ids, keeps }) => (keeps && ids.length === 1 ? 0.5 : 0));
    expect(await check(spoiled)).toEqual({ deterministic: yes, singlesAsPieces: false });
  });
});
