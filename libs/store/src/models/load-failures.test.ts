import { readFileSync } from 'node:fs';
import { allKeys, openTestStore } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { clearLoadFailure, readLoadFailures, reportLoadFailure } from './load-failures.ts';

const attempt = { model: 'tiny', host: 'box' };
const shownMs = 60_000;

it('lists load failures by model and host; the latest reason replaces earlier ones', async () => {
  const store = openTestStore();
  expect(await readLoadFailures(store)).toEqual([]);
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs });
  await reportLoadFailure(store, attempt, { reason: 'no files', shownMs });
  await reportLoadFailure(store, attempt, { reason: 'unet/config.json: is missing', shownMs });
  const failedAtMs = expect.any(Number) as number;
  expect(await readLoadFailures(store)).toEqual([
    { ...attempt, reason: 'unet/config.json: is missing', failedAtMs },
    { model: 'zebra', host: 'a', reason: 'too large', failedAtMs },
  ]);
  await clearLoadFailure(store, attempt);
  expect((await readLoadFailures(store)).map(({ model }) => model)).toEqual(['zebra']);
});

it('expires load failures', async () => {
  const store = openTestStore();
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs: 1 });
  await expect.poll(() => readLoadFailures(store)).toEqual([]);
  await reportLoadFailure(store, attempt, { reason: 'no files', shownMs });
  await reportLoadFailure(store, { model: 'zebra', host: 'a' }, { reason: 'too large', shownMs: 1 });
  // The key's TTL is that of the failure shown longest; expired fields are hidden, and deleted at the next write.
  await reportLoadFailure(store, attempt, { reason: 'no files', shownMs });
  await expect.poll(async () => (await readLoadFailures(store)).map(({ model }) => model)).toEqual(['tiny']);
  await reportLoadFailure(store, attempt, { reason: 'no files', shownMs });
  const [key, ...others] = await allKeys(store);
  expect([key, others]).toEqual([`${store.prefix}:v3:load-failures`, []]);
  expect(await store.redis.hkeys(key!)).toEqual(['tiny box']);
  expect(await store.redis.pttl(key!)).toBeGreaterThan(0);
  expect(readFileSync(new URL('../../../../docs/redis-keys.md', import.meta.url), 'utf8')).toContain(
    '`P:v3:load-failures`',
  );
});
