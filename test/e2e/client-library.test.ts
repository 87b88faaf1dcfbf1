/** The client library (libs/client) against the real system. */
import { createClient, type RequestEvent } from '@darkroom/client';
import { expect, it } from 'vitest';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();

const prompt = 'a red apple on a white background';

it('client library: waits, and returns several images with their seeds', async () => {
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({ prompt, n: 3, num_inference_steps: 5, seed: 40 });
  const ended = await client.wait(id);
  expect([ended.status, ended.progress]).toEqual(['succeeded', 1]);
  const images = await client.images(id);
  expect(images.map(({ seed, bytes, data }) => [seed, bytes === data.length])).toEqual([
    [40, true],
    [41, true],
    [42, true],
  ]);
  if (ended.images === undefined) throw new Error('no request of images');
  // This server stores prompts.
  const { prompt: storedPrompt, negative_prompt: storedNegative, ...others } = ended.parameters;
  const again = { ...others, prompt: storedPrompt!, negative_prompt: storedNegative! };
  expect((await client.submit(again)).status).toBe('queued');
});

it('client library: cancels a running request, which ends its stream', async () => {
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({ prompt, num_inference_steps: 200 });
  let last: RequestEvent | undefined;
  let status = '';
  for await (const event of client.stream(id)) {
    last = event;
    if (event.type === 'progress' && event.step >= 3 && status === '') ({ status } = await client.cancel(id));
  }
  expect([status, last?.type, (await client.get(id)).status]).toEqual(['canceling', 'canceled', 'canceled']);
  await expect(client.cancel(id)).rejects.toMatchObject({ status: 409, code: 'request_ended' });
  expect(await client.images(id)).toEqual([]);
});

it('client library: reports errors with status, code and param', async () => {
  const client = createClient({ baseUrl: system.url });
  await expect(client.submit({ prompt, seed: -1 })).rejects.toMatchObject({ status: 400, param: 'seed' });
  await expect(client.get('emoji-sd-01kaj4v6x2e8w0w1m6r3c9f5tz')).rejects.toMatchObject({ status: 404 });
  await expect(client.stream('nothing').next()).rejects.toMatchObject({ status: 404, code: 'request_not_found' });
});

it('client library: text deltas add up to the text, and the same parameters give it again', async () => {
  const client = createClient({ baseUrl: system.url });
  const messages = [{ role: 'user', content: 'something sweet for a birthday party' }];
  for (const model of ['emoji-writer', 'emoji-writer-diffusion']) {
    const { request_id: id } = await client.submit({ model, messages });
    let grown = '';
    const blocks: string[] = [];
    let finalText = '';
    for await (const event of client.stream(id)) {
      if (event.type === 'delta') grown += event.text;
      if (event.type === 'snapshot') blocks.push(event.text);
      if (event.type === 'text') finalText = event.text;
    }
    expect(grown).toMatch(/ on an? .*background$/);
    expect(finalText).toBe(grown);
    expect(blocks.some((block) => block.includes('░'))).toBe(model === 'emoji-writer-diffusion');
    const ended = await client.wait(id);
    expect([ended.status, ended.texts, ended.images]).toEqual([
      'succeeded',
      [{ index: 0, text: finalText }],
      undefined,
    ]);
    if (ended.texts === undefined || ended.parameters.prompt === null) throw new Error('no request of texts');
    const { request_id: again } = await client.submit({ ...ended.parameters, prompt: ended.parameters.prompt });
    expect((await client.wait(again)).texts).toEqual(ended.texts);
  }
});
