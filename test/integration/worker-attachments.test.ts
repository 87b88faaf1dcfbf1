/** Attachments of a request (init image, mask) on their way to an engine. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@darkroom/service';
import { createCostMeter } from '@darkroom/testing';
import { admitRequest, cancelRequest, newRequestId, type StoreConnection, sweepWorkers } from '@darkroom/store';
import { openTestStore, testEnvelope } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lease, stateOf, types, startBench } from './worker-bench.ts';

const attachments = new Map([
  ['image', Buffer.from('an image')],
  ['mask', Buffer.from('a mask')],
]);

async function submit(store: StoreConnection, brought?: typeof attachments): Promise<string> {
  const id = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });
  const envelope = testEnvelope({ id, ...(brought && { attachments: [...brought.keys()] }) });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept', attachments: brought });
  return id;
}

it('passes attachments to the engine, also on the next worker after a requeue', async () => {
  const store = openTestStore();
  const first = await startBench({ store });
  const id = await submit(store, attachments);
  await lease(store, id);
  await expect.poll(() => first.executor.submitted).toHaveLength(1);
  expect(first.executor.submitted[0]!.attachments).toEqual(attachments);
  for (let sweeps = 0; sweeps < 4; sweeps++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await stateOf(store, id)).toBe('queued');
  const second = await startBench({ store, workerId: 'w2' });
  await lease(store, id, () => {}, 'w2');
  await expect.poll(() => second.executor.submitted).toHaveLength(1);
  expect(second.executor.submitted[0]!.attachments).toEqual(attachments);
});

it('a request without attachments costs no extra read', async () => {
  const { store, executor } = await startBench();
  const id = await submit(store);
  const costOf = await createCostMeter(store);
  const { sent, inScripts } = await costOf(async () => {
    await lease(store, id);
    await expect.poll(() => executor.submitted).toHaveLength(1);
  });
  expect([...sent, ...inScripts].filter((command) => /hgetall/i.test(command))).toEqual([]);
  expect('attachments' in executor.submitted[0]!).toBe(false);
});

/** Starts a worker that holds a request whose attachments it cannot read. */
async function openAway() {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-away-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'bytes');
  const store = openTestStore({ bytes: { kind: 'directory', path } });
  const lines: string[] = [];
  const log = createLogger({ app: 'worker', level: 'warn', stream: { write: (line) => void lines.push(line) } });
  const bench = await startBench({ store, log });
  const id = await submit(store, attachments);
  // Replace the directory by a file, so that every read in it fails.
  await rename(path, `${path}.kept`);
  await writeFile(path, '');
  await lease(store, id);
  await expect.poll(() => lines.join('')).toContain('away');
  const comeBack = async (): Promise<void> => {
    await rm(path);
    await rename(`${path}.kept`, path);
  };
  return { ...bench, id, comeBack };
}

describe('while the blob store is unavailable', () => {
  it('a request waits for its attachments without losing an attempt, and does not block other requests', async () => {
    const { store, executor, id, comeBack } = await openAway();
    const other = await submit(store);
    await lease(store, other);
    await expect.poll(() => executor.submitted).toHaveLength(1);
    expect('attachments' in executor.submitted[0]!).toBe(false);
    await comeBack();
    await expect.poll(() => executor.submitted, { timeout: 5000 }).toHaveLength(2);
    expect(executor.submitted[1]!.attachments).toEqual(attachments);
    expect(await types(store, id)).toEqual(['queued', 'started']);
  });

  it('a worker that stops requeues a request that waits for its attachments, without counting an attempt', async () => {
    const { store, worker, executor, id } = await openAway();
    await worker.stop();
    expect(await stateOf(store, id)).toBe('queued');
    expect(await store.redis.hget(store.keysOf('tiny').request(id), 'attempts')).toBe('0');
    expect(executor.submitted).toEqual([]);
  });

  it('drops a request that waits for its attachments when it is canceled', async () => {
    const { store, worker, executor, id } = await openAway();
    await cancelRequest(store, id);
    await expect.poll(() => stateOf(store, id)).toBe('canceled');
    await expect.poll(() => worker.requestIds).toEqual([]);
    expect(executor.submitted).toEqual([]);
  });
});
