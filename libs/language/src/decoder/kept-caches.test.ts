import { describe, expect, it } from 'vitest';
import type { Decoder, TokenCache } from './decoder.ts';
import { KeptCaches } from './kept-caches.ts';

const roomOf = (cache: TokenCache) => cache.length;

function createKept(maxTokens: number) {
  const released: TokenCache[] = [];
  const decoder = { roomOf, releaseCache: (cache) => released.push(cache) } as Partial<Decoder> as Decoder;
  const kept = new KeptCaches(decoder, maxTokens);
  return { kept, released };
}
const text = (from: number, length: number) => Array.from({ length }, (_, at) => from + at);
const known = (ids: number[], length = ids.length) => ({ ids, cache: { length }, owner: 'alice', request: {} });
const wanted = (ids: number[], owner = 'alice') => ({ ids, owner });

describe('kept caches', () => {
  it('give the longest beginning that there is', () => {
    const { kept } = createKept(1000);
    const [short, long] = [known(text(0, 20)), known([...text(0, 30), ...text(500, 10)])];
    kept.keep(short);
    kept.keep(long);
    expect(kept.find(wanted(text(0, 100)), [])).toMatchObject({ known: { cache: long.cache }, length: 30 });
    expect(kept.find(wanted([...text(0, 25), 7]), [])).toMatchObject({ known: { cache: long.cache }, length: 25 });
    const other = known(text(0, 200), 60);
    expect(kept.find(wanted(text(0, 100)), [other])).toMatchObject({ known: other, length: 60 });
    expect(kept.find(wanted(text(1, 100)), [])).toBeUndefined();
    expect(kept.find(wanted(text(0, 7)), [])).toBeUndefined();
    expect(kept.find(wanted(text(0, 100), 'bob'), [other])).toBeUndefined();
  });

  it('let go of what was of use longest ago', () => {
    const { kept, released } = createKept(60);
    const caches = [0, 1000, 2000].map((from) => known(text(from, 20)));
    for (const each of caches) kept.keep(each);
    expect(kept.find(wanted(text(0, 20)), [])).toMatchObject({ length: 20 });
    const last = known(text(3000, 30));
    kept.keep(last);
    expect(released).toEqual([caches[1]!.cache, caches[2]!.cache]);
    expect(kept.room).toBe(50);
  });

  it('keep nothing twice', () => {
    const { kept, released } = createKept(1000);
    const [half, whole, again] = [known(text(0, 20)), known(text(0, 40)), known(text(0, 30))];
    kept.keep(half);
    kept.keep(whole);
    kept.keep(again);
    expect(released).toEqual([half.cache, again.cache]);
    expect(kept.room).toBe(40);
  });

  it('keep nothing twice of which only a part may be used', () => {
    const { kept, released } = createKept(1000);
    const caches = [1, 2, 3].map(() => known(text(0, 20), 50));
    for (const each of caches) kept.keep(each);
    expect(released).toEqual(caches.slice(1).map(({ cache }) => cache));
    expect(kept.find(wanted(text(0, 100)), [])).toMatchObject({ length: 20 });
  });
});
