/** Twenty pictures through a Redis that fails over, and what must be true of each of them afterwards. */
import { isTerminalState } from '@darkroom/core';
import { readEvents, type StoreConnection } from '@darkroom/store';
import { expect } from 'vitest';
import { picture, poll, submit } from '../../e2e/client.ts';

export interface Ordered {
  id: string;
  seed: number;
}

/** One request for each seed and model. */
export function order(url: string, models: readonly string[], seeds: readonly number[]): Promise<Ordered[]> {
  const body = { prompt: 'a red apple on a white background', num_inference_steps: 24, preview: 'off' };
  return Promise.all(
    seeds.flatMap((seed) => models.map(async (model) => ({ id: await submit(url, { ...body, model, seed }), seed }))),
  );
}

/** Asks until Redis has been back long enough for an answer that the request has ended. */
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

export async function picturesBySeed(url: string, ordered: readonly Ordered[]): Promise<Map<number, Buffer>> {
  const pictures = new Map<number, Buffer>();
  for (const { id, seed } of ordered) {
    expect(await untilEnded(url, id)).toBe('succeeded');
    pictures.set(seed, await picture(url, id));
  }
  return pictures;
}

/** Every request ended once, with the picture that its seed always makes. */
export async function expectEachOnce(
  { url, store }: { url: string; store: StoreConnection },
  ordered: readonly Ordered[],
  expected: ReadonlyMap<number, Buffer>,
): Promise<void> {
  for (const { id, seed } of ordered) {
    expect([id, await untilEnded(url, id)]).toEqual([id, 'succeeded']);
    expect((await picture(url, id)).equals(expected.get(seed)!)).toBe(true);
    const events = await readEvents(store, id, { after: 0, limit: 10_000 });
    expect(events.filter(({ type }) => isTerminalState(type)).map(({ type }) => type)).toEqual(['succeeded']);
    expect(isTerminalState(events.at(-1)!.type)).toBe(true);
  }
}
