/** The client library while the API that it streams from is killed or stopped. */
import { createClient, type ImageEvent, type RequestEvent } from '@darkroom/client';
import { freePort } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { openSystem } from '../e2e/system.ts';

it('resumes a stream after its API is killed or stopped, without lost or repeated events', async () => {
  const system = await openSystem({
    // A fixed port lets the client reach the API after its restart.
    environment: { PORT: String(await freePort()) },
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
  // No step comes twice. Steps that ran while no stream was open may be missing.
  expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
  expect(steps.at(-1)).toBe(150);
  const types = seen.map(({ type }) => type).filter((type) => type !== 'progress');
  expect(types).toEqual(['queued', 'started', 'image', 'succeeded']);
  // The log holds the same events, without the previews, which are deleted when the request ends.
  const again: RequestEvent[] = [];
  for await (const event of client.stream(id)) again.push(event);
  expect(again).toEqual(seen.map((event) => (event.type === 'progress' ? { ...event, preview: undefined } : event)));
  const [image] = await client.images(id);
  const { data, content_type, seed } = seen.find((event): event is ImageEvent => event.type === 'image')!;
  expect({ data, content_type, seed }).toEqual({ data: image!.data, content_type: 'image/png', seed: 7 });
});
