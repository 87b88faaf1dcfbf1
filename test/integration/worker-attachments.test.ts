/** What came with a request, on its way to an engine. */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@darkroom/service';
import { createCostMeter } from '@darkroom/testing';
import { admitRequest, cancelRequest, newRequestId, type StoreConnection, sweepWorkers } from '@darkroom/store';
import { openTestStore, testEnvelope } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { lease, openBench, stateOf, types } from './worker-bench.ts';

const attachments = new Map([
  ['image', Buffer.from('a picture')],
  ['mask', Buffer.from('a mask')],
]);

async function submit(store: StoreConnection, brought?: typeof attachments): Promise<string> {
  const id = await newRequestId(store, { model: 'tiny', owner: '', nowMs: Date.now() });
  const envelope = testEnvelope({ id, ...(brought && { attachments: [...brought.keys()] }) });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept', attachments: brought });
  return id;
}

it('goes with it, also to the worker that takes it over', async () => {
  const store = openTestStore();
  const first = openBench({ store });
  await first.worker.start();
  const id = await submit(store, attachments);
  await lease(store, id);
  await expect.poll(() => first.executor.submitted).toHaveLength(1);
  expect(first.executor.submitted[0]!.attachments).toEqual(attachments);
  for (let sweeps = 0; sweeps < 4; sweeps++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await stateOf(store, id)).toBe('queued');
  const second = openBench({ store, workerId: 'w2' });
  await second.worker.start();
  await lease(store, id, () => {}, 'w2');
  await expect.poll(() => second.executor.submitted).toHaveLength(1);
  expect(second.executor.submitted[0]!.attachments).toEqual(attachments);
});

it('costs a request that came with nothing nothing', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const id = await submit(store);
  const costOf = await createCostMeter(store);
  const { sent, inScripts } = await costOf(async () => {
    await lease(store, id);
    await expect.poll(() => executor.submitted).toHaveLength(1);
  });
  expect([...sent, ...inScripts].filter((command) => /hgetall/i.test(command))).toEqual([]);
  expect('attachments' in executor.submitted[0]!).toBe(false);
});

/** A worker that has been leased a request whose pictures it cannot read. */
async function openAway() {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-away-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'bytes');
  const store = openTestStore({ bytes: { kind: 'directory', path } });
  const lines: string[] = [];
  const log = createLogger({ app: 'worker', level: 'warn', stream: { write: (line) => void lines.push(line) } });
  const bench = openBench({ store, log });
  await bench.worker.start();
  const id = await submit(store, attachments);
  // Not a directory any more, so that nothing in it can be asked for.
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

describe('while the store of pictures is away', () => {
  it('waits, lets others go before it, and begins when that is back: no attempt is lost', async () => {
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

  it('is given back by a worker that stops, which is no attempt', async () => {
    const { store, worker, executor, id } = await openAway();
    await worker.stop();
    expect(await stateOf(store, id)).toBe('queued');
    expect(await store.redis.hget(store.keysOf('tiny').request(id), 'attempts')).toBe('0');
    expect(executor.submitted).toEqual([]);
  });

  it('is let go of when it is canceled', async () => {
    const { store, worker, executor, id } = await openAway();
    await cancelRequest(store, id);
    await expect.poll(() => stateOf(store, id)).toBe('canceled');
    await expect.poll(() => worker.requestIds).toEqual([]);
    expect(executor.submitted).toEqual([]);
  });
});
