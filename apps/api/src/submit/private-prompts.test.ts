/** Prompts are private: where they are stored, for how long, and where they never appear. */
import { allKeys } from '@darkroom/testing';
import { heartbeatWorker } from '@darkroom/store';
import { expect, it } from 'vitest';
import { requestSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const prompt = 'a surprise for my sister';
const negative_prompt = 'anything she might guess';

/** Returns all keys and values under the store's prefix as text. */
async function dump({ store }: TestApi): Promise<string> {
  const { redis } = store;
  const parts: string[] = [];
  for (const key of await allKeys(store)) {
    const type = await redis.type(key);
    const content =
      type === 'hash'
        ? await redis.hgetall(key)
        : type === 'stream'
          ? await redis.xrange(key, '-', '+')
          : type === 'list'
            ? await redis.lrange(key, 0, -1)
            : type === 'string'
              ? await redis.get(key)
              : await redis.call(type === 'set' ? 'smembers' : 'zrange', ...(type === 'set' ? [key] : [key, 0, -1]));
    parts.push(key, JSON.stringify(content));
  }
  return parts.join('\n');
}

async function viewOf(test: TestApi, id: string) {
  return requestSchema.parse(await (await test.api.request(`/v1/predict/${id}`)).json());
}

it('deletes prompts from Redis when the request ends if STORE_PROMPTS is off', async () => {
  const test = await openTestApi({ config: { storePrompts: false } });
  await startWorker(test.store);
  const ids = [await test.submit({ prompt, negative_prompt }), await test.submit({ prompt, negative_prompt })];
  expect((await viewOf(test, ids[0]!)).parameters.prompt).toBe(prompt);
  const running = await runNext(test.store);
  await running.output(0, Buffer.from('png'));
  await running.finish();
  // The worker deletes the inbox entry once it has read its leases.
  const [last] = await test.store.redis.xrevrange(test.store.keysOf('tiny').inbox('w1'), '+', '-', 'COUNT', 1);
  await heartbeatWorker(test.store, { shard: 'tiny', workerId: 'w1', incarnation: 'first' }, { lastRead: last![0] });
  await test.api.request(`/v1/predict/${ids[1]}`, { method: 'DELETE' });
  const left = await dump(test);
  expect(left).toContain('succeeded');
  expect(left).not.toContain(prompt);
  expect(left).not.toContain(negative_prompt);
  for (const id of ids)
    expect((await viewOf(test, id)).parameters).toMatchObject({ prompt: null, negative_prompt: null, seed: 42 });
});

it('stores prompts with the result by default', async () => {
  const test = await openTestApi();
  const id = await test.submit({ prompt });
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect((await viewOf(test, id)).parameters).toMatchObject({ prompt, negative_prompt: '' });
});

it('never logs prompts, not even in errors', async () => {
  const test = await openTestApi({ config: { queueMaxLength: 2 } });
  await test.submit({ prompt });
  await test.post({ prompt, n: 99 });
  await test.post({ prompt, promt: prompt });
  await test.submit({ prompt });
  await test.post({ prompt });
  await test.api.request(`/v1/predict?prompt=${encodeURIComponent(prompt)}`);
  expect(test.lines.length).toBeGreaterThan(3);
  expect(test.lines.join('\n')).not.toContain('surprise');
});
