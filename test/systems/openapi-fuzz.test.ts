/**
 * Fuzzes the running API with Schemathesis by its OpenAPI document: no 5xx, no response that the document does not
 * describe, and no stored request that was refused.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageCard } from '@darkroom/kinds';
import { createEventHub, readStats, publishModel, readWorkers, type StoreConnection } from '@darkroom/store';
import { expect, it, onTestFinished } from 'vitest';
import {
  NothingWaits,
  NotRunning,
  runNext,
  type RunningRequest,
  startWorker,
} from '../../apps/api/src/testing/fake-worker.ts';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { serveTextModel, textFacts } from '../../apps/api/src/testing/text-model.ts';
import { installSchemathesis, runSchemathesis } from './schemathesis.ts';
import { openSystem } from '../e2e/system.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** An image model that also takes input images and masks. */
const taking: ImageCard = { ...card, takes: ['image', 'mask'] };

/** Model name used in the document's examples. */
const writer = 'emoji-writer';

/** Starts played workers that finish each request immediately; the returned function stops them. */
async function workAtOnce(store: StoreConnection): Promise<() => Promise<void>> {
  await publishModel(store, taking);
  await startWorker(store);
  await serveTextModel(store, { id: writer });
  const stops = await Promise.all([
    doAtOnce(store, card.id, async (running) => {
      await running.progress(1, png);
      for (let index = 0; index < running.count; index++) await running.output(index, png);
    }),
    doAtOnce(store, writer, async (running) => {
      await running.entry({ type: 'delta', offset: 0, text: 'a fox', done: 2, facts: { ids: '7,8,' } });
      const facts = textFacts({ finish_reason: 'stop', completion_tokens: 3, calls: 3 });
      for (let index = 0; index < running.count; index++)
        await running.output(index, Buffer.from('a fox'), undefined, facts);
    }),
  ]);
  return async () => void (await Promise.all(stops.map((stop) => stop())));
}

async function doAtOnce(
  store: StoreConnection,
  model: string,
  work: (running: RunningRequest) => Promise<void>,
): Promise<() => Promise<void>> {
  const wakeups = createEventHub(store);
  let working = Promise.resolve();
  const stop = await wakeups.listen(model, () => {
    working = working.then(() => doAll(store, model, work));
  });
  return async () => {
    stop();
    wakeups.close();
    await working;
  };
}

async function doAll(
  store: StoreConnection,
  model: string,
  work: (running: RunningRequest) => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      const running = await runNext(store, model);
      await work(running);
      await running.finish();
    } catch (error) {
      if (error instanceof NothingWaits) return;
      // The request was canceled meanwhile.
      if (!(error instanceof NotRunning)) throw error;
    }
  }
}

interface Har {
  log: {
    entries: {
      request: { method: string; url: string };
      response: { status: number; headers: { name: string; value: string }[]; content: { text?: string } };
    }[];
  };
}

/** Returns the request ids in bodies and headers of successful responses. */
function acceptedIds(har: Har): Set<string> {
  const ids = new Set<string>();
  for (const { response } of har.log.entries)
    if (response.status < 400)
      for (const [id] of JSON.stringify([response.headers, response.content.text]).matchAll(
        /(?:tiny|emoji-writer)-[0-9a-z]{26}/g,
      ))
        ids.add(id);
  return ids;
}

it('conforms to its OpenAPI document under fuzzing, and stores no refused request', { timeout: 600_000 }, async () => {
  await installSchemathesis();
  const system = await openSystem({
    parts: ['api'],
    environment: { API_KEYS: 'fuzzer:s3cret-of-the-fuzzer', QUEUE_MAX_LENGTH: '100000' },
  });
  const stopWorking = await workAtOnce(system.store);
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-fuzz-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const harFile = join(directory, 'report.har');
  const { exitCode, output } = await runSchemathesis(`${system.url}/openapi.json`, directory, [
    '--header=Authorization: Bearer s3cret-of-the-fuzzer',
    // With 7, Schemathesis 4.32.5 itself fails on a form with a file: "Unsupported type: 'Binary'".
    '--seed=8',
    '--max-examples=60',
    '--phases=examples,coverage,fuzzing,stateful',
    '--report=har',
    `--report-har-path=${harFile}`,
  ]);
  await stopWorking();
  // On failure the output has the requests that reproduce it.
  expect(exitCode === 0 ? '' : output).toBe('');
  const har = JSON.parse(readFileSync(harFile, 'utf8')) as Har;
  expect(har.log.entries.length).toBeGreaterThan(500);
  const keys = await system.store.redis.keys(`${system.prefix}:*:request:*`);
  const stored = keys.map((key) => key.split(':').at(-1)!);
  expect(stored.length).toBeGreaterThan(50);
  expect(stored.filter((id) => id.startsWith(writer)).length).toBeGreaterThan(10);
  const accepted = acceptedIds(har);
  expect(stored.filter((id) => !accepted.has(id))).toEqual([]);
});

it(
  'conforms to its OpenAPI document on admin routes, and pauses or drains no unknown model or worker',
  { timeout: 600_000 },
  async () => {
    await installSchemathesis();
    const environment = { API_KEYS: 'user:k3y-of-the-tests-user', ADMIN_KEYS: 'fuzzer:s3cret-of-the-fuzzer' };
    const system = await openSystem({ parts: ['api'], environment });
    await publishModel(system.store, card);
    await startWorker(system.store);
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-fuzz-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const { exitCode, output } = await runSchemathesis(`${system.url}/openapi.json`, directory, [
      '--header=Authorization: Bearer s3cret-of-the-fuzzer',
      '--include-path-regex=^/admin/',
      '--seed=7',
      '--max-examples=60',
      '--phases=examples,coverage,fuzzing',
    ]);
    expect(exitCode === 0 ? '' : output).toBe('');
    expect((await readStats(system.store, card.id)).isPaused).toBe(false);
    expect(await readWorkers(system.store, card.id, 10)).toMatchObject([{ workerId: 'w1', state: 'idle' }]);
  },
);
