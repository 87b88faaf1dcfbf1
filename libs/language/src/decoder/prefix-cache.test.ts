import { describe, expect, it } from 'vitest';
import type { Decoder, TokenCache } from './decoder.ts';
import { PrefixCache } from './prefix-cache.ts';

const memoryOf = (cache: TokenCache) => cache.length;

function createPrefixCache(maxTokens: number) {
  const released: TokenCache[] = [];
  const decoder = { memoryOf, releaseCache: (cache) => released.push(cache) } as Partial<Decoder> as Decoder;
  const prefixCache = new PrefixCache(decoder, maxTokens);
  return { prefixCache, released };
}
const text = (from: number, length: number) => Array.from({ length }, (_, at) => from + at);
const known = (ids: number[], length = ids.length) => ({ ids, cache: { length }, owner: 'alice', request: {} });
const query = (ids: number[], owner = 'alice') => ({ ids, owner });

describe('retained caches', () => {
  it('return the longest common prefix', () => {
    const { prefixCache } = createPrefixCache(1000);
    const [short, long] = [known(text(0, 20)), known([...text(0, 30), ...text(500, 10)])];
    prefixCache.add(short);
    prefixCache.add(long);
    expect(prefixCache.find(query(text(0, 100)), [])).toMatchObject({ known: { cache: long.cache }, length: 30 });
    expect(prefixCache.find(query([...text(0, 25), 7]), [])).toMatchObject({
      known: { cache: long.cache },
      length: 25,
    });
    const other = known(text(0, 200), 60);
    expect(prefixCache.find(query(text(0, 100)), [other])).toMatchObject({ known: other, length: 60 });
    expect(prefixCache.find(query(text(1, 100)), [])).toBeUndefined();
    expect(prefixCache.find(query(text(0, 7)), [])).toBeUndefined();
    expect(prefixCache.find(query(text(0, 100), 'bob'), [other])).toBeUndefined();
  });

  it('evict the least recently used', () => {
    const { prefixCache, released } = createPrefixCache(60);
    const caches = [0, 1000, 2000].map((from) => known(text(from, 20)));
    for (const each of caches) prefixCache.add(each);
    expect(prefixCache.find(query(text(0, 20)), [])).toMatchObject({ length: 20 });
    const last = known(text(3000, 30));
    prefixCache.add(last);
    expect(released).toEqual([caches[1]!.cache, caches[2]!.cache]);
    expect(prefixCache.usedTokens).toBe(50);
  });

  it('retain no cache whose tokens are a prefix of another', () => {
    const { prefixCache, released } = createPrefixCache(1000);
    const [half, whole, again] = [known(text(0, 20)), known(text(0, 40)), known(text(0, 30))];
    prefixCache.add(half);
    prefixCache.add(whole);
    prefixCache.add(again);
    expect(released).toEqual([half.cache, again.cache]);
    expect(prefixCache.usedTokens).toBe(40);
  });

  it('retain no duplicate of a partly usable cache', () => {
    const { prefixCache, released } = createPrefixCache(1000);
    const caches = [1, 2, 3].map(() => known(text(0, 20), 50));
    for (const each of caches) prefixCache.add(each);
    expect(released).toEqual(caches.slice(1).map(({ cache }) => cache));
    expect(prefixCache.find(query(text(0, 100)), [])).toMatchObject({ length: 20 });
  });
});
