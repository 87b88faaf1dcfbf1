/** A Redis that comes back empty: nothing can be done for the requests that were in it, and everything for the next. */
import { readFileSync } from 'node:fs';
import { allKeys, startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { ended, poll, stream, submit } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';

it('workers bring their models and themselves back, with nothing started again', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const system = await openSystem({ environment: { REDIS_URL: redis.url } });
  const lost = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 150 });
  await stream(system.url, lost, { until: ({ event }) => event === 'progress' });
  // At once: key by key, what is under way would write between two of them.
  await system.store.redis.flushall();
  // This API gave the id out, and knows that by the id alone.
  expect(await poll(system.url, lost)).toMatchObject({ error: { code: 'request_gone' } });
  const health = async (): Promise<unknown> => (await fetch(`${system.url}/health`)).json();
  await expect.poll(health).toMatchObject({ status: 'ok' });
  const id = await submit(system.url, { prompt: 'a rocket', num_inference_steps: 3 });
  expect(await ended(system.url, id)).toBe('succeeded');
  // What was under way then wrote nothing any more.
  expect((await allKeys(system.store)).filter((key) => key.includes(lost))).toEqual([]);
  const fatal = readFileSync(system.logFile, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"level":"fatal"'));
  expect(fatal).toEqual([]);
});
