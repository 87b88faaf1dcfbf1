/** Redis commands per request: the numbers of docs/architecture.md. */
import { type Costs, createCostMeter } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import { openImageAndTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';

/** Opens a metered API with models and secrets cached; `nextSecond` expires the cache. */
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

it('a poll takes one round trip, and one more for eta_seconds', async () => {
  const { app, costOf, get } = await openMetered();
  const path = `/v1/predict/${await app.submit()}`;
  await get(path);
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get', 'evalsha']);
  await app.api.request(path, { method: 'DELETE' });
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get']);
});

it('a poll of a text takes one more round trip for its text; the log is not read once it is done', async () => {
  const app = await openImageAndTextApi('autoregressive');
  const costOf = await createCostMeter(app.store);
  const get = async (path: string): Promise<Response> => app.api.request(path);
  const path = `/v1/predict/${await app.submit({ model: textModel, n: 2 })}`;
  await get(path);
  expect((await costOf(() => get(path))).sent).toEqual(['hgetall', 'get', 'evalsha']);
  const run = await runNextText(app);
  await run.entry({ type: 'delta', offset: 0, text: 'a' });
  // The first call of a script sends its source.
  await get(path);
  const { sent, inScripts } = await costOf(() => get(path));
  expect(sent).toEqual(['hgetall', 'get', 'evalsha']);
  // Previews are not read either.
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

it('a submit takes one round trip', async () => {
  const { app, costOf } = await openMetered();
  expect((await costOf(() => app.submit())).sent).toEqual(['evalsha']);
});

it('a submit with an Idempotency-Key takes three round trips: claim the key, store the request, settle the key', async () => {
  const { app, costOf } = await openMetered();
  const submit = async (key: string): Promise<void> => {
    const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key };
    const body = JSON.stringify({ prompt: 'a fox' });
    expect((await app.api.request('/v1/predict', { method: 'POST', headers, body })).status).toBe(202);
  };
  // The first call of a script sends its source.
  await submit('first');
  expect((await costOf(() => submit('second'))).sent).toEqual(['evalsha', 'evalsha', 'evalsha']);
});

it.each([
  ['a wait for the end takes small outputs from the events', 6, undefined, []],
  ['a wait for the end reads a large output at the end', 70_000, undefined, ['hgetall']],
  ['a wait for the end reads an output of several chunks at the end', 6, 3, ['hgetall']],
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
  // The end and the request in one round trip; the rest is not awaited.
  expect(sent.filter((name) => name !== 'unsubscribe')).toEqual(['evalsha', 'hgetall', 'get', ...more]);
});

it('a stream of an ended request reads the request and its log, and subscribes to nothing', async () => {
  const app = await openTestApi();
  const costOf = await createCostMeter(app.store);
  await startWorker(app.store);
  const path = `/v1/predict/${await app.submit()}/events`;
  await (await runNext(app.store)).finish();
  const follow = async (): Promise<string> => (await app.api.request(path)).text();
  // The first call of a script sends its source.
  await follow();
  expect((await costOf(follow)).sent).toEqual(['hgetall', 'get', 'evalsha']);
  expect(await follow()).toMatch(/\ndata: \[DONE\]\n\n$/);
});

it.each(['/health', '/v1/models', '/v1/models/tiny', '/status'])(
  '%s reads Redis once a second, however often it is polled',
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
    // The first call of a script sends its source.
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

it('/status reads at most a hundred workers of a model', async () => {
  const { app, costOf, get, nextSecond } = await openMetered();
  const counts: number[] = [];
  for (const workers of [3, 100, 300]) {
    await startWorkers(app, workers);
    nextSecond();
    counts.push((await costOf(() => get('/status'))).sent.length);
  }
  const [few, many, more] = counts;
  // Two commands per listed worker.
  expect([many! - few!, more! - few!]).toEqual([2 * 97, 2 * 97]);
});
