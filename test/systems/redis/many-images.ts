/** Requests many images across a Redis failover and checks each of them afterwards. */
import { isTerminalState } from '@darkroom/core';
import { readEvents, type StoreConnection } from '@darkroom/store';
import { expect } from 'vitest';
import { fetchImage, poll, submit } from '../../e2e/client.ts';

export interface SubmittedImage {
  id: string;
  seed: number;
}

/** Submits one request for each seed and model. */
export function submitImages(
  url: string,
  models: readonly string[],
  seeds: readonly number[],
): Promise<SubmittedImage[]> {
  const body = { prompt: 'a red apple on a white background', num_inference_steps: 24, preview: 'off' };
  return Promise.all(
    seeds.flatMap((seed) => models.map(async (model) => ({ id: await submit(url, { ...body, model, seed }), seed }))),
  );
}

/** Polls, also while Redis is unavailable, until the request has ended; returns its status. */
export async function untilEnded(url: string, id: string): Promise<string> {
  let status = 'unknown';
  await expect
    .poll(
      async () => {
        status = (await poll(url, id)).status;
        return status === 'canceled' || status === 'expired' || status === 'failed' || status === 'succeeded';
      },
      { timeout: 120_000, interval: 100 },
    )
    .toBe(true);
  return status;
}

export async function imagesBySeed(url: string, submitted: readonly SubmittedImage[]): Promise<Map<number, Buffer>> {
  const images = new Map<number, Buffer>();
  for (const { id, seed } of submitted) {
    expect(await untilEnded(url, id)).toBe('succeeded');
    images.set(seed, await fetchImage(url, id));
  }
  return images;
}

/** Checks that each request ended once, as succeeded, with the expected image of its seed. */
export async function expectEachOnce(
  { url, store }: { url: string; store: StoreConnection },
  submitted: readonly SubmittedImage[],
  expected: ReadonlyMap<number, Buffer>,
): Promise<void> {
  for (const { id, seed } of submitted) {
    expect([id, await untilEnded(url, id)]).toEqual([id, 'succeeded']);
    expect((await fetchImage(url, id)).equals(expected.get(seed)!)).toBe(true);
    const events = await readEvents(store, id, { after: 0, limit: 10_000 });
    expect(events.filter(({ type }) => isTerminalState(type)).map(({ type }) => type)).toEqual(['succeeded']);
    expect(isTerminalState(events.at(-1)!.type)).toBe(true);
  }
}
