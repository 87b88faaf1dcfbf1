/** A Redis that loses all data (FLUSHALL): its requests are lost, and new requests must be served without a restart. */
import { readFileSync } from 'node:fs';
import { allKeys, startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { ended, poll, stream, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';

it('republishes models and registers workers again after FLUSHALL, without restarting a process', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const system = await openSystem({ environment: { REDIS_URL: redis.url } });
  const lost = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 150 });
  await stream(system.url, lost, { until: ({ event }) => event === 'progress' });
  // FLUSHALL is atomic; if keys were deleted one by one, the worker would write in between.
  await system.store.redis.flushall();
  // The id itself shows that the API issued it, so it answers `request_gone`.
  expect(await poll(system.url, lost)).toMatchObject({ error: { code: 'request_gone' } });
  const health = async (): Promise<unknown> => (await fetch(`${system.url}/health`)).json();
  await expect.poll(health).toMatchObject({ status: 'ok' });
  const id = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 3 });
  expect(await ended(system.url, id)).toBe('succeeded');
  // The lost request's worker wrote nothing more: its lease is gone.
  expect((await allKeys(system.store)).filter((key) => key.includes(lost))).toEqual([]);
  const fatal = readFileSync(system.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"level":"fatal"'));
  expect(fatal).toEqual([]);
});
