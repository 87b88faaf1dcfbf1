/** OpenAI's SDK while the API stops or is killed. The requests stay queued because no batch-former runs. */
import { allKeys, freePort } from '@darkroom/testing';
import OpenAI from 'openai';
import { expect, it } from 'vitest';
import { poll } from '../e2e/client.ts';
import { openSystem, type System } from '../e2e/system.ts';

const model = 'emoji-sd';
const prompt = 'a red apple on a white background';
const parts = ['worker', 'api'] as const;

function connect({ url }: System, options: { maxRetries?: number } = {}): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', ...options });
}

/** Returns the ids of all stored requests. */
async function storedIds({ store }: System): Promise<string[]> {
  const start = store.keysOf(model).request('');
  const keys = await allKeys(store);
  return keys.filter((key) => key.startsWith(`${start}${model}-`)).map((key) => key.slice(start.length));
}

async function onlyId(system: System): Promise<string> {
  await expect.poll(() => storedIds(system)).toHaveLength(1);
  return (await storedIds(system))[0]!;
}

it('answers 422 server_stopping with the request id when the API stops, and the SDK does not resend', async () => {
  const system = await openSystem({ parts });
  const failing = connect(system)
    .images.generate({ prompt })
    .catch((error: unknown) => error);
  const id = await onlyId(system);
  const stopping = system.part('api').stop();
  expect(await failing).toMatchObject({ status: 422, code: 'server_stopping', requestID: id });
  await stopping;
  const { url } = await system.start('api');
  expect(await poll(url, id)).toMatchObject({ status: 'queued' });
  expect(await storedIds(system)).toEqual([id]);
});

it.each(['kill', 'stop'] as const)(
  'finds the same request by its Idempotency-Key when the SDK retries after the API is gone: %s',
  async (end) => {
    const environment = { PORT: String(await freePort()) };
    const system = await openSystem({ parts, environment });
    const client = connect(system, { maxRetries: 20 });
    const answering = client.images.generate({ prompt }, { headers: { 'Idempotency-Key': 'apple-1' } });
    const id = await onlyId(system);
    await system.part('api')[end]();
    await system.start('api');
    await system.start('batch-former');
    const images = await answering;
    expect(images).toMatchObject({ _request_id: id });
    expect(await storedIds(system)).toEqual([id]);
  },
);
