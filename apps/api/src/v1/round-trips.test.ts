/** What a request costs in commands to Redis: the numbers of docs/architecture.md. */
import { type Costs, createCostMeter } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { openTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';

/** With models and secrets read; they are asked for again when `nextSecond` was called. */
async function openMetered() {
  let nowMs = Date.now();
  const app = await openTestApi({ clock: { now: () => nowMs } });
  await app.submit();
  return {
    app,
    costOf: await createCostMeter(app.store),
    nextSecond: () => void (nowMs += 1000),
    get: async (path: string) => expect((await app.api.request(path)).ok).toBe(true),
  };
}

async function startWorkers({ store }: TestApi, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_value, index) => startWorker(store, { workerId: `w${index}` })));
}

it('a poll is one round trip, and one more where it says how long it is yet to wait', async () => {
  const { app, costOf, get } = await openMetered();
  const path = `/v1/predict/${await app.submit()}`;
  await get(path);
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get', 'evalsha']);
  await app.api.request(path, { method: 'DELETE' });
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get']);
});

it('a poll of text is another one, for what stands of it: no log is read of one that is done', async () => {
  const app = await openTextApi('autoregressive');
  const costOf = await createCostMeter(app.store);
  const get = async (path: string): Promise<Response> => app.api.request(path);
  const path = `/v1/predict/${await app.submit({ model: textModel, n: 2 })}`;
  await get(path);
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get', 'evalsha']);
  const run = await runNextText(app);
  await run.entry({ type: 'delta', offset: 0, text: 'a' });
  // The first time a script goes as its text.
  await get(path);
  const { sent, inScripts } = await costOf(() => get(path));
  expect(sent).toEqual(['hgetall', 'get', 'evalsha']);
  // Nor are there previews.
  expect(inScripts).not.toContain('hget');
  for (const index of [0, 1])
    await run.output(
      index,
      Buffer.from(`text ${index}`),
      100,
      textFacts({ finish_reason: 'stop', completion_tokens: 1, calls: 1 }),
    );
  await run.finish();
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get', 'hgetall', 'hgetall']);
  expect(await (await get(path)).json()).toMatchObject({ texts: [{ text: 'text 0' }, { text: 'text 1' }] });
});

it('a submit is one round trip', async () => {
  const { app, costOf } = await openMetered();
  expect((await costOf(() => app.submit())).sent).toEqual(['evalsha']);
});

it('a submit with an Idempotency-Key is three: its key is claimed, it is stored, and what came of it is noted', async () => {
  const { app, costOf } = await openMetered();
  const submit = async (key: string): Promise<void> => {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key };
    const body = JSON.stringify({ prompt: 'a fox' });
    expect((await app.api.request('/v1/predict', { method: 'POST', headers, body })).status).toBe(202);
  };
  // The first time a script goes as its text.
  await submit('first');
  expect((await costOf(() => submit('second'))).sent).toEqual(['evalsha', 'evalsha', 'evalsha']);
});

it.each([
  ['small outputs come with the events of who waits for the end', 6, 409_600, []],
  ['a large output is read at the end', 70_000, 409_600, ['hgetall']],
  ['an output of several chunks is read at the end', 6, 3, ['hgetall']],
])('%s', async (_what, bytes, chunkBytes, more) => {
  const app = await openTestApi();
  await startWorker(app.store);
  const answering = app.api.request('/v1/predict', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Prefer: 'wait' },
    body: JSON.stringify({ prompt: 'a fox', n: 2, output: 'inline' }),
  });
  await expect.poll(() => app.hub.size).toBe(1);
  const run = await vi.waitFor(() => runNext(app.store));
  const data = [Buffer.alloc(bytes, 'a'), Buffer.alloc(9, 'b')];
  await run.output(0, data[0]!, chunkBytes);
  await run.output(1, data[1]!);
  const costOf = await createCostMeter(app.store);
  const { sent } = await costOf(async () => {
    await run.finish();
    const { images } = (await (await answering).json()) as { images: { b64_json: string }[] };
    expect(images.map(({ b64_json }) => Buffer.from(b64_json, 'base64').equals(data.shift()!))).toEqual([true, true]);
  });
  // The end itself, and the request as it is then, in one round trip; nobody waits for the rest.
  expect(sent.filter((name) => name !== 'unsubscribe')).toEqual(['evalsha', 'hgetall', 'get', ...more]);
});

it.each(['/health', '/v1/models', '/v1/models/tiny', '/status'])(
  '%s asks Redis once a second, however often it is asked',
  async (path) => {
    const { app, costOf, get, nextSecond } = await openMetered();
    await startWorkers(app, 3);
    nextSecond();
    const once = await costOf(() => get(path));
    expect(once.sent.length).toBeGreaterThan(0);
    nextSecond();
    const often = await costOf(async () => {
      await Promise.all(Array.from({ length: 100 }, () => get(path)));
      await get(path);
    });
    expect(often.sent.toSorted()).toEqual(once.sent.toSorted());
  },
);

it.each(['/health', '/v1/models', 'a poll', 'a submit'])(
  '%s costs the same with 3 workers and with 300',
  async (what) => {
    const { app, costOf, get, nextSecond } = await openMetered();
    const waiting = `/v1/predict/${await app.submit()}`;
    const ask = (): Promise<unknown> => {
      if (what === 'a submit') return app.submit();
      return get(what === 'a poll' ? waiting : what);
    };
    // The first time a script goes as its text.
    await ask();
    const costs: Pick<Costs, 'sent' | 'inScripts'>[] = [];
    for (const workers of [3, 300]) {
      await startWorkers(app, workers);
      nextSecond();
      const { sent, inScripts } = await costOf(ask);
      costs.push({ sent: sent.toSorted(), inScripts: inScripts.toSorted() });
    }
    expect(costs[1]).toEqual(costs[0]);
  },
);

it('/status looks at a hundred workers of a model, however many there are', async () => {
  const { app, costOf, get, nextSecond } = await openMetered();
  const counts: number[] = [];
  for (const workers of [3, 100, 300]) {
    await startWorkers(app, workers);
    nextSecond();
    counts.push((await costOf(() => get('/status'))).sent.length);
  }
  const [few, many, more] = counts;
  // Two commands for each that is listed.
  expect([many! - few!, more! - few!]).toEqual([2 * 97, 2 * 97]);
});
