/** What came with a request, on its way to an engine. */
import { createCostMeter } from '@darkroom/testing';
import { admitRequest, newRequestId, type StoreConnection, sweepWorkers } from '@darkroom/store';
import { openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { lease, openBench, stateOf } from './worker-bench.ts';

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
