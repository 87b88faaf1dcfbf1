/** The client library on a system whose API dies while it streams. */
import { createClient, type ImageEvent, type RequestEvent } from '@darkroom/client';
import { freePort } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { openSystem } from '../e2e/system.ts';

it('streams a picture over an API that is killed and one that is stopped, dropping nothing, repeating nothing', async () => {
  const system = await openSystem({
    // Small chunks, so that pictures come in several; one port, so that the API is found again.
    environment: { CHUNK_BYTES: '3000', PORT: String(await freePort()) },
  });
  const client = createClient({ baseUrl: system.url });
  const { request_id: id } = await client.submit({
    prompt: 'a red apple on a white background',
    num_inference_steps: 150,
    seed: 7,
    preview: { every: 10 },
  });
  const seen: RequestEvent[] = [];
  for await (const event of client.stream(id)) {
    seen.push(event);
    if (event.type !== 'progress' || (event.step !== 20 && event.step !== 80)) continue;
    await (event.step === 20 ? system.part('api').kill() : system.part('api').stop());
    await system.start('api');
  }
  const steps = seen.filter((event) => event.type === 'progress').map(({ step = 0 }) => step);
  // None twice; those may be missing that were taken while nobody had come to read them.
  expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
  expect(steps.at(-1)).toBe(150);
  const types = seen.map(({ type }) => type).filter((type) => type !== 'progress');
  expect(types).toEqual(['queued', 'started', 'image', 'succeeded']);
  // What was live is what the log holds, but for the previews, which go at the end.
  const again: RequestEvent[] = [];
  for await (const event of client.stream(id)) again.push(event);
  expect(again).toEqual(seen.map((event) => (event.type === 'progress' ? { ...event, preview: undefined } : event)));
  const [picture] = await client.images(id);
  const { data, content_type, seed } = seen.find((event): event is ImageEvent => event.type === 'image')!;
  expect({ data, content_type, seed }).toEqual({ data: picture!.data, content_type: 'image/png', seed: 7 });
  expect(picture!.data.length).toBeGreaterThan(3000);
});
