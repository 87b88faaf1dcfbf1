/** Models are split into two shards and merged again while the system runs: images and texts, one worker each. */
import { listModels, pauseModel, resumeModel } from '@darkroom/store';
import { expect, it } from 'vitest';
import { ended, isStep, make, fetchImage, poll, stream, submit } from '../e2e/client.ts';
import { openSystem, longWorkerTtl, type System } from '../e2e/system.ts';

const seeds = [1, 2, 3, 4];
const models = ['emoji-sd', 'emoji-writer'];
const drawing = { model: 'emoji-sd', prompt: 'a red apple', num_inference_steps: 6, preview: 'off' };
const writing = { model: 'emoji-writer', prompt: 'once', max_tokens: 24, ignore_eos: true, temperature: 1, seed: 9 };

/** Restarts the janitor with another MODEL_SHARDS, and waits until requests go to that number of shards. */
async function setShards(system: System, count: number): Promise<void> {
  await system.part('janitor').stop();
  await system.start('janitor', { MODEL_SHARDS: String(count) });
  const expected = models.map((id) => ({ id, shards: [id, `${id}~1`].slice(0, count) }));
  await expect.poll(() => listModels(system.store), { timeout: 20_000 }).toMatchObject(expected);
  // The API refreshes its list of shards only once a second.
  await expect
    .poll(async () => shardsOf([await submit(system.url, drawing), await submit(system.url, drawing)]))
    .toHaveLength(count);
}

function shardsOf(ids: readonly string[]): string[] {
  return [...new Set(ids.map((id) => id.slice(0, -27)))].toSorted();
}

function submitAll(system: System, bodies: readonly { prompt: string }[]): Promise<string[]> {
  return Promise.all(bodies.map((body) => submit(system.url, body)));
}

async function textOf(system: System, id: string): Promise<unknown> {
  expect(await ended(system.url, id)).toBe('succeeded');
  return ((await poll(system.url, id)) as unknown as { texts: unknown }).texts;
}

it(
  'loses no request and keeps all bytes when MODEL_SHARDS goes from 1 to 2 and back',
  { timeout: 300_000 },
  async () => {
    const system = await openSystem({
      parts: ['api', 'batch-former', 'janitor', 'worker'],
      environment: longWorkerTtl,
    });
    await system.start('worker', { MODEL_DIR: 'models/emoji-writer' });
    const { url, store } = system;
    const images = await Promise.all(seeds.map((seed) => make(url, { ...drawing, seed })));
    const text = await textOf(system, await submit(url, writing));
    await setShards(system, 2);

    // Requests of each model are in both shards, and its only worker serves both.
    const [drawn, written] = [
      await submitAll(
        system,
        seeds.map((seed) => ({ ...drawing, seed })),
      ),
      await submitAll(system, [writing, writing]),
    ];
    expect(shardsOf([...drawn, ...written])).toEqual(['emoji-sd', 'emoji-sd~1', 'emoji-writer', 'emoji-writer~1']);
    for (const [at, id] of drawn.entries()) {
      expect(await ended(url, id)).toBe('succeeded');
      expect((await fetchImage(url, id)).equals(images[at]!)).toBe(true);
      expect(await poll(url, id)).toMatchObject({ model: 'emoji-sd', status: 'succeeded' });
    }
    for (const id of written) expect(await textOf(system, id)).toEqual(text);

    // In the second shard: resume a stream, repeat an Idempotency-Key, cancel a queued request.
    const [far] = (
      await submitAll(
        system,
        [drawing, drawing].map((body) => ({ ...body, num_inference_steps: 60 })),
      )
    ).filter((id) => id.includes('~1'));
    const begun = await stream(url, far!, { until: isStep(2) });
    const rest = await stream(url, far!, { lastEventId: begun.at(-1)!.id! });
    expect(rest.map(({ event }) => event)).toContain('succeeded');
    expect(Number(rest[0]!.id)).toBe(Number(begun.at(-1)!.id) + 1);
    await pauseModel(store, 'emoji-sd');
    const sends = await Promise.all([1, 2, 3, 4].map(() => submit(url, drawing, { 'idempotency-key': 'mine' })));
    expect(new Set(sends).size).toBe(1);
    const waiting = await submitAll(
      system,
      [...seeds, ...seeds].map((seed) => ({ ...drawing, seed })),
    );
    const canceled = waiting.find((id) => id.includes('~1'))!;
    expect((await fetch(`${url}/v1/predict/${canceled}`, { method: 'DELETE' })).status).toBe(200);
    const status = (await (await fetch(`${url}/status`)).json()) as { queues: object[]; workers: object[] };
    expect(status.queues).toMatchObject([
      { model: 'emoji-sd', paused: true, workers: 1 },
      { model: 'emoji-writer', workers: 1 },
    ]);

    // Requests queued in the second shard run after it is closed.
    await resumeModel(store, 'emoji-sd');
    await setShards(system, 1);
    for (const [at, id] of waiting.entries()) {
      const outcome = await ended(url, id);
      const isSame = outcome === 'succeeded' && (await fetchImage(url, id)).equals(images[at % seeds.length]!);
      expect([id, outcome, isSame]).toEqual([id, ...(id === canceled ? ['canceled', false] : ['succeeded', true])]);
    }
    expect(shardsOf(await submitAll(system, [drawing, drawing, drawing]))).toEqual(['emoji-sd']);
    await expect
      .poll(async () => (await (await fetch(`${url}/health`)).json()) as object)
      .toMatchObject({ status: 'ok', active_workers: 2 });
  },
);
