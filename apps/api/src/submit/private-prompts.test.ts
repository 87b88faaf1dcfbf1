/** Prompts are private: where they are, how long, and where they never are. */
import { allKeys } from '@darkroom/testing';
import { heartbeatWorker } from '@darkroom/store';
import { expect, it } from 'vitest';
import { requestSchema } from '../v1/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const prompt = 'a surprise for my sister';
const negative_prompt = 'anything she might guess';

/** Everything Redis holds under the store's prefix, as text. */
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

it('drops prompts from Redis when the request ends, where they are not to be stored', async () => {
  const test = await openTestApi({ config: { storePrompts: false } });
  await startWorker(test.store);
  const ids = [await test.submit({ prompt, negative_prompt }), await test.submit({ prompt, negative_prompt })];
  expect((await viewOf(test, ids[0]!)).parameters.prompt).toBe(prompt);
  const running = await runNext(test.store);
  await running.output(0, Buffer.from('png'));
  await running.finish();
  // As its worker does once it has read the leases.
  const [last] = await test.store.redis.xrevrange(test.store.keysOf('tiny').inbox('w1'), '+', '-', 'COUNT', 1);
  await heartbeatWorker(test.store, { model: 'tiny', workerId: 'w1', incarnation: 'first' }, { lastRead: last![0] });
  await test.api.request(`/v1/predict/${ids[1]}`, { method: 'DELETE' });
  const left = await dump(test);
  expect(left).toContain('succeeded');
  expect(left).not.toContain(prompt);
  expect(left).not.toContain(negative_prompt);
  for (const id of ids)
    expect((await viewOf(test, id)).parameters).toMatchObject({ prompt: null, negative_prompt: null, seed: 42 });
});

it('keeps them with the result otherwise', async () => {
  const test = await openTestApi();
  const id = await test.submit({ prompt });
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect((await viewOf(test, id)).parameters).toMatchObject({ prompt, negative_prompt: '' });
});

it('writes them into no line of the log, whatever goes wrong', async () => {
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
