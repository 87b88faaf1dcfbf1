import { describe, expect, it } from 'vitest';
import {
  createRequestId,
  isModelId,
  isOurRequestId,
  modelOfRequestId,
  shardOfRequestId,
  timeOfRequestId,
} from './request-id.ts';
import { numberOfShard, shardName } from './shard.ts';

const authority = { owner: 'alice', secret: 'of this server' };

describe('request ids', () => {
  it('contain their model, including dashes and dots', () => {
    for (const model of ['emoji-sd', 'sd1.5', 'a', 'x_y-z.1'])
      expect(modelOfRequestId(createRequestId({ model, nowMs: 1_700_000_000_000, ...authority }))).toBe(model);
  });

  it('contain the shard of their model', () => {
    for (const [number, shard] of [
      [0, 'sd1.5'],
      [1, 'sd1.5~1'],
      [63, 'sd1.5~63'],
    ] as const) {
      expect(shardName('sd1.5', number)).toBe(shard);
      const id = createRequestId({ model: shard, nowMs: 1000, ...authority });
      expect([shardOfRequestId(id), modelOfRequestId(id), numberOfShard(shard)]).toEqual([shard, 'sd1.5', number]);
      expect(isOurRequestId(id, authority)).toBe(true);
    }
    // The authentication codes cover the shard, too.
    const id = createRequestId({ model: 'm', nowMs: 1000, ...authority });
    expect(isOurRequestId(id.replace('m-', 'm~1-'), authority)).toBe(false);
    expect(isModelId('m~1')).toBe(false);
  });

  it('sort by time', () => {
    const ids = [3, 1, 2].map((second) => createRequestId({ model: 'm', nowMs: second * 1000, ...authority }));
    expect(ids.toSorted()).toEqual([ids[1], ids[2], ids[0]]);
  });

  it('match the ULID specification for a known time and entropy', () => {
    const entropy = new Uint8Array(5).fill(255);
    const id = createRequestId({ model: 'm', nowMs: 1_469_918_176_385, entropy, ...authority });
    expect(id).toMatch(/^m-01aryz6s41z{8}[0-9a-z]{8}$/);
    expect(createRequestId({ model: 'm', nowMs: 1_469_918_176_385, entropy, ...authority })).toBe(id);
    expect(timeOfRequestId(id)).toBe(1_469_918_176_385);
  });

  it('are authenticated as ours and as their owner’s, and cannot be forged', () => {
    const { owner, secret } = authority;
    const id = createRequestId({ model: 'm', nowMs: 1000, ...authority });
    expect(isOurRequestId(id, { owner, secret })).toBe(true);
    expect(isOurRequestId(id, { owner: undefined, secret })).toBe(true);
    expect(isOurRequestId(id, { owner: 'bob', secret })).toBe(false);
    expect(isOurRequestId(id, { owner, secret: 'of another server' })).toBe(false);
    expect(isOurRequestId(id, { owner: undefined, secret: 'of another server' })).toBe(false);
    for (let position = 2; position < id.length; position++) {
      const changed = `${id.slice(0, position)}${id[position] === '0' ? '1' : '0'}${id.slice(position + 1)}`;
      expect(isOurRequestId(changed, { owner, secret })).toBe(false);
    }
    for (const text of ['', 'nonsense', id.slice(1), `${id}0`])
      expect(isOurRequestId(text, { owner, secret })).toBe(false);
  });

  it.each([
    '',
    'emoji-sd',
    '01arz3ndektsv4rrffq69g5fav',
    'emoji-sd-01ARZ3NDEKTSV4RRFFQ69G5FAV',
    'a:b-01arz3ndektsv4rrffq69g5fav',
    '../x',
    'm~0-01arz3ndektsv4rrffq69g5fav',
    'm~100-01arz3ndektsv4rrffq69g5fav',
    'm~-01arz3ndektsv4rrffq69g5fav',
    '~1-01arz3ndektsv4rrffq69g5fav',
  ])('reject %j', (text) => expect(modelOfRequestId(text)).toBeUndefined());

  it('reject model names that are unsafe in a URL, a file name or a hash tag', () => {
    expect(['emoji-sd', 'sd1.5'].every(isModelId)).toBe(true);
    expect(['', '-a', 'a-', 'A', 'a/b', 'a{b}', 'a b', 'x'.repeat(65)].some(isModelId)).toBe(false);
  });
});
