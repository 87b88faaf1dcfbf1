import { describe, expect, it } from 'vitest';
import { createRequestId, isModelId, modelOfRequestId } from './request-id.ts';

describe('request ids', () => {
  it('name their model, whatever dashes and dots it has', () => {
    for (const model of ['emoji-sd', 'sd1.5', 'a', 'x_y-z.1'])
      expect(modelOfRequestId(createRequestId({ model, nowMs: 1_700_000_000_000 }))).toBe(model);
  });

  it('sort by time', () => {
    const ids = [3, 1, 2].map((second) => createRequestId({ model: 'm', nowMs: second * 1000 }));
    expect(ids.toSorted()).toEqual([ids[1], ids[2], ids[0]]);
  });

  it('match the ULID specification for a known time and entropy', () => {
    const id = createRequestId({ model: 'm', nowMs: 1_469_918_176_385, entropy: new Uint8Array(10).fill(255) });
    expect(id).toMatch(/^m-01aryz6s41z{16}$/);
  });

  it.each([
    '',
    'emoji-sd',
    '01arz3ndektsv4rrffq69g5fav',
    'emoji-sd-01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'a:b-01arz3ndektsv4rrffq69g5fav',
    '../x',
  ])('do not match %j', (text) => expect(modelOfRequestId(text)).toBeUndefined());

  it('refuse model names that would not survive a URL, a file name or a hash tag', () => {
    expect(['emoji-sd', 'sd1.5'].every(isModelId)).toBe(true);
    expect(['', '-a', 'a-', 'A', 'a/b', 'a{b}', 'a b', 'x'.repeat(65)].some(isModelId)).toBe(false);
  });
});
