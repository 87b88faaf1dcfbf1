/** The client library on the real system, whose API dies while it streams. */
import { createClient, type ImageEvent, type RequestEvent } from '@darkroom/client';
import { freePort } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startSystem, stopSystem, type System } from './system.ts';

let system: System;
beforeAll(async () => {
  system = await startSystem({
    parts: ['batch-former', 'janitor', 'worker'],
    // Small chunks, so that pictures come in several.
    environment: { CHUNK_BYTES: '3000', PORT: String(await freePort()) },
  });
  await system.start('api');
});
afterAll(() => stopSystem(system));

const prompt = 'a red apple on a white background';

it('streams a picture over an API that is killed and one that is stopped, dropping nothing, repeating nothing', async () => {
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({ prompt, num_inference_steps: 150, seed: 7, preview: { every: 10 } });
  const seen: RequestEvent[] = [];
  for await (const event of client.stream(id)) {
    seen.push(event);
    if (event.type !== 'progress' || (event.step !== 20 && event.step !== 80)) continue;
    await (event.step === 20 ? system.part('api').kill() : system.part('api').stop());
    await system.start('api');
  }
  const steps = seen.filter((event) => event.type === 'progress').map(({ step }) => step);
  expect(steps).toEqual(Array.from({ length: 150 }, (_value, index) => index + 1));
  const types = seen.map(({ type }) => type).filter((type) => type !== 'progress');
  expect(types).toEqual(['queued', 'started', 'image', 'succeeded']);
  // What was live is what the log holds.
  const again: RequestEvent[] = [];
  for await (const event of client.stream(id)) again.push(event);
  expect(again).toEqual(seen);
  const [picture] = await client.images(id);
  const { data, content_type, seed } = seen.find((event): event is ImageEvent => event.type === 'image')!;
  expect({ data, content_type, seed }).toEqual({ data: picture!.data, content_type: 'image/png', seed: 7 });
  expect(picture!.data.length).toBeGreaterThan(3000);
});

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
