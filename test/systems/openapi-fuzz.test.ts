/**
 * The running API against its own document: whatever Schemathesis makes of it, there is no 5xx, no answer that the
 * document does not describe, and nothing stored by a request that was refused.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEventHub, readStats, publishModel, readWorkers, type StoreConnection } from '@darkroom/store';
import { expect, it, onTestFinished } from 'vitest';
import {
  NothingWaits,
  NotRunning,
  type RunningRequest,
  runNext,
  startWorker,
} from '../../apps/api/src/testing/fake-worker.ts';
import { end, publishWriter, write, writer } from '../../apps/api/src/testing/open-text-api.ts';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { installSchemathesis, runSchemathesis } from './schemathesis.ts';
import { openSystem } from '../e2e/system.ts';

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** A worker that takes no time: thousands of requests are worked on in between. */
async function workAtOnce(
  store: StoreConnection,
  model: string,
  each: (running: RunningRequest) => Promise<void>,
): Promise<() => Promise<void>> {
  const wakeups = createEventHub(store);
  let working = Promise.resolve();
  const stop = await wakeups.listen(model, () => {
    working = working.then(() => workOff(store, model, each));
  });
  return async () => {
    stop();
    wakeups.close();
    await working;
  };
}

async function draw(running: RunningRequest): Promise<void> {
  await running.progress(1, png);
  for (let index = 0; index < running.count; index++) await running.output(index, png);
}

async function writeText(running: RunningRequest): Promise<void> {
  for (let index = 0; index < running.count; index++) {
    await write(running, ['a red ', 'fox'], { index });
    await end(running, 'a red fox', { index });
  }
}

async function workOff(
  store: StoreConnection,
  model: string,
  each: (running: RunningRequest) => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      const running = await runNext(store, model);
      await each(running);
      await running.finish();
    } catch (error) {
      if (error instanceof NothingWaits) return;
      // Canceled under it.
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

/** Ids that some answer of success named, in its body or a header. */
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

interface Fuzzed {
  model: string;
  each: (running: RunningRequest) => Promise<void>;
  /** Which paths. */
  paths: string;
  publish: (store: StoreConnection) => Promise<void>;
  /** What there is at least of both. */
  calls: number;
  requests: number;
}

const text = '^/v1/(?:responses|chat/completions|completions)';
/** As examples in the document name it: of what is made up hardly any body fits a model. */
const documentedWriter = { ...writer, id: 'emoji-writer' };
const fuzzed: [string, Fuzzed][] = [
  [
    'pictures, and all that is of no kind',
    {
      model: card.id,
      each: draw,
      paths: `--exclude-path-regex=${text}`,
      publish: publishPainter,
      calls: 500,
      requests: 50,
    },
  ],
  [
    'text',
    {
      model: documentedWriter.id,
      each: writeText,
      paths: `--include-path-regex=${text}`,
      publish: (store) => publishWriter(store, documentedWriter),
      calls: 200,
      requests: 1,
    },
  ],
];

async function publishPainter(store: StoreConnection): Promise<void> {
  await publishModel(store, card);
  await startWorker(store);
}

it.each(fuzzed)(
  'keeps to its document under Schemathesis, and stores nothing that it refuses: %s',
  { timeout: 600_000 },
  async (_name, { model, each, paths, publish, calls, requests }) => {
    await installSchemathesis();
    const system = await openSystem({
      parts: ['api'],
      environment: { API_KEYS: 'fuzzer:s3cret', QUEUE_MAX_LENGTH: '100000' },
    });
    await publish(system.store);
    const stopWorking = await workAtOnce(system.store, model, each);
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-fuzz-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const harFile = join(directory, 'report.har');
    const { exitCode, output } = await runSchemathesis(`${system.url}/openapi.json`, directory, [
      '--header=Authorization: Bearer s3cret',
      paths,
      '--seed=7',
      '--max-examples=60',
      '--phases=examples,coverage,fuzzing,stateful',
      '--report=har',
      `--report-har-path=${harFile}`,
    ]);
    await stopWorking();
    // Its report says what to send to see the fault again.
    expect(exitCode === 0 ? '' : output).toBe('');
    const har = JSON.parse(readFileSync(harFile, 'utf8')) as Har;
    expect(har.log.entries.length).toBeGreaterThan(calls);
    const keys = await system.store.redis.keys(`${system.prefix}:*:request:*`);
    const stored = keys.map((key) => key.split(':').at(-1)!);
    const accepted = acceptedIds(har);
    expect(accepted.size).toBeGreaterThan(requests);
    expect(stored.filter((id) => !accepted.has(id))).toEqual([]);
  },
);

it(
  'keeps to its document for admins too, and pauses and drains nothing that is not there',
  { timeout: 600_000 },
  async () => {
    await installSchemathesis();
    const environment = { API_KEYS: 'user:k3y', ADMIN_KEYS: 'fuzzer:s3cret' };
    const system = await openSystem({ parts: ['api'], environment });
    await publishModel(system.store, card);
    await startWorker(system.store);
    const directory = mkdtempSync(join(tmpdir(), 'darkroom-fuzz-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const { exitCode, output } = await runSchemathesis(`${system.url}/openapi.json`, directory, [
      '--header=Authorization: Bearer s3cret',
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
