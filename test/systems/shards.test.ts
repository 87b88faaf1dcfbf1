/** A model that gets a second shard and loses it again while everything runs: pictures and texts, one worker for each. */
import { listModels, pauseModel, resumeModel } from '@darkroom/store';
import { expect, it } from 'vitest';
import { ended, isStep, make, picture, poll, stream, submit } from '../e2e/client.ts';
import { openSystem, patience, type System } from '../e2e/system.ts';

const seeds = [1, 2, 3, 4];
const models = ['emoji-sd', 'emoji-writer'];
const drawing = { model: 'emoji-sd', prompt: 'a red apple', num_inference_steps: 6, preview: 'off' };
const writing = { model: 'emoji-writer', prompt: 'once', max_tokens: 24, ignore_eos: true, temperature: 1, seed: 9 };

/** Starts the janitor anew with another number, and waits until requests go to so many shards. */
async function spread(system: System, count: number): Promise<void> {
  await system.part('janitor').stop();
  await system.start('janitor', { MODEL_SHARDS: String(count) });
  const expected = models.map((id) => ({ id, shards: [id, `${id}~1`].slice(0, count) }));
  await expect.poll(() => listModels(system.store), { timeout: 20_000 }).toMatchObject(expected);
  // An API may have looked a second before.
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
  'one shard, two, one: nothing is lost, and every request is what it is without shards',
  { timeout: 300_000 },
  async () => {
    const system = await openSystem({ parts: ['api', 'batch-former', 'janitor', 'worker'], environment: patience });
    await system.start('worker', { MODEL_DIR: 'models/emoji-writer' });
    const { url, store } = system;
    const pictures = await Promise.all(seeds.map((seed) => make(url, { ...drawing, seed })));
    const text = await textOf(system, await submit(url, writing));
    await spread(system, 2);

    // Each in both, drawn and written by the one worker that there is.
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
      expect((await picture(url, id)).equals(pictures[at]!)).toBe(true);
      expect(await poll(url, id)).toMatchObject({ model: 'emoji-sd', status: 'succeeded' });
    }
    for (const id of written) expect(await textOf(system, id)).toEqual(text);

    // A reader that comes again, a key that is sent again, one that waits and is called off.
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
    const key = { 'content-type': 'application/json', 'idempotency-key': 'mine' };
    const sends = await Promise.all(
      [1, 2, 3, 4].map(async () =>
        (await fetch(`${url}/v1/predict`, { method: 'POST', headers: key, body: JSON.stringify(drawing) })).json(),
      ),
    );
    expect(new Set((sends as { request_id: string }[]).map((sent) => sent.request_id)).size).toBe(1);
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

    // What waits in the second one is drawn when there is only the first.
    await resumeModel(store, 'emoji-sd');
    await spread(system, 1);
    for (const [at, id] of waiting.entries()) {
      const outcome = await ended(url, id);
      const isSame = outcome === 'succeeded' && (await picture(url, id)).equals(pictures[at % seeds.length]!);
      expect([id, outcome, isSame]).toEqual([id, ...(id === canceled ? ['canceled', false] : ['succeeded', true])]);
    }
    expect(shardsOf(await submitAll(system, [drawing, drawing, drawing]))).toEqual(['emoji-sd']);
    await expect
      .poll(async () => (await (await fetch(`${url}/health`)).json()) as object)
      .toMatchObject({ status: 'ok', active_workers: 2 });
  },
);
