/** The client library on the real system. */
import { createClient, type RequestEvent } from '@darkroom/client';
import { expect, it } from 'vitest';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();

const prompt = 'a red apple on a white background';

it('waits, and brings several pictures with their seeds', async () => {
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({ prompt, n: 3, num_inference_steps: 5, seed: 40 });
  const ended = await client.wait(id);
  expect([ended.status, ended.progress]).toEqual(['succeeded', 1]);
  const pictures = await client.images(id);
  expect(pictures.map(({ seed, bytes, data }) => [seed, bytes === data.length])).toEqual([
    [40, true],
    [41, true],
    [42, true],
  ]);
  // This server keeps prompts.
  const { prompt: kept, negative_prompt: avoided, ...others } = ended.parameters;
  const again = { ...others, prompt: kept!, negative_prompt: avoided! };
  expect((await client.submit(again)).status).toBe('queued');
});

it('cancels what runs, which ends the stream', async () => {
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({ prompt, num_inference_steps: 200 });
  let last: RequestEvent | undefined;
  let status = '';
  for await (const event of client.stream(id)) {
    last = event;
    if (event.type === 'progress' && event.step === 3) ({ status } = await client.cancel(id));
  }
  expect([status, last?.type, (await client.get(id)).status]).toEqual(['canceling', 'canceled', 'canceled']);
  await expect(client.cancel(id)).rejects.toMatchObject({ status: 409, code: 'request_ended' });
  expect(await client.images(id)).toEqual([]);
});

it('says what is wrong', async () => {
  const client = createClient({ baseUrl: system.url });
  await expect(client.submit({ prompt, seed: -1 })).rejects.toMatchObject({ status: 400, param: 'seed' });
  await expect(client.get('emoji-sd-01kaj4v6x2e8w0w1m6r3c9f5tz')).rejects.toMatchObject({ status: 404 });
  await expect(client.stream('nothing').next()).rejects.toMatchObject({ status: 404, code: 'request_not_found' });
});
