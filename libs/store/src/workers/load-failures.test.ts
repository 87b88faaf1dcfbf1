import { readFileSync } from 'node:fs';
import { allKeys, openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { clearLoadFailure, readLoadFailures, reportLoadFailure } from './load-failures.ts';

const place = { model: 'tiny', host: 'box' };
const shownMs = 60_000;

it('says what cannot be loaded where, and the last word counts', async () => {
  const store = openTestStore();
  expect(await readLoadFailures(store)).toEqual([]);
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs });
  await reportLoadFailure(store, place, { reason: 'no files', shownMs });
  await reportLoadFailure(store, place, { reason: 'unet/config.json: is missing', shownMs });
  const failedAtMs = expect.any(Number) as number;
  expect(await readLoadFailures(store)).toEqual([
    { ...place, reason: 'unet/config.json: is missing', failedAtMs },
    { model: 'zebra', host: 'a', reason: 'too large', failedAtMs },
  ]);
  await clearLoadFailure(store, place);
  expect((await readLoadFailures(store)).map(({ model }) => model)).toEqual(['zebra']);
});

it('neither reads nor changes what an older version says there', async () => {
  const store = openTestStore();
  const older = `${store.prefix}:load-failures`;
  await store.redis.hset(older, 'tiny box', '1700000060000 1700000000000 {"model":"tiny","reason":"no files"}');
  await reportLoadFailure(store, place, { reason: 'too large', shownMs });
  expect(await readLoadFailures(store)).toMatchObject([{ ...place, reason: 'too large' }]);
  expect(await store.redis.hgetall(older)).toEqual({
    'tiny box': '1700000060000 1700000000000 {"model":"tiny","reason":"no files"}',
  });
});

it('forgets by itself', async () => {
  const store = openTestStore();
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs: 1 });
  await expect.poll(() => readLoadFailures(store)).toEqual([]);
  await reportLoadFailure(store, place, { reason: 'no files', shownMs });
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs: 1 });
  // The key now lives as long as the last one said; what ran out is not shown, and goes when another is written.
  await reportLoadFailure(store, place, { reason: 'no files', shownMs });
  await expect.poll(async () => (await readLoadFailures(store)).map(({ model }) => model)).toEqual(['tiny']);
  await reportLoadFailure(store, place, { reason: 'no files', shownMs });
  const [key, ...others] = await allKeys(store);
  expect([key, others]).toEqual([`${store.prefix}:v2:load-failures`, []]);
  expect(await store.redis.hkeys(key!)).toEqual(['tiny box']);
  expect(await store.redis.pttl(key!)).toBeGreaterThan(0);
  expect(readFileSync(new URL('../../../../docs/redis-keys.md', import.meta.url), 'utf8')).toContain(
    '`P:v2:load-failures`',
  );
});
