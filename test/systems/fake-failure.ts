/** A worker played by the tests in an otherwise real system; it fails its leased requests on command. */
import type { Failure } from '@darkroom/core';
import { heartbeatWorker, openInbox, publishModel, type StoreConnection, writeBatch } from '@darkroom/store';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { card } from '../../apps/api/src/testing/test-api.ts';

const fake = { shard: card.id, workerId: 'fake', incarnation: 'first' };
let batches = 0;

/** Publishes the model `tiny` and registers the worker `fake`. The returned function stops its heartbeat. */
export async function startFakeWorker(store: StoreConnection): Promise<() => void> {
  await publishModel(store, card);
  await startWorker(store, { workerId: fake.workerId });
  const heart = setInterval(() => void heartbeatWorker(store, fake), 500);
  return () => clearInterval(heart);
}

/** Fails a request of `tiny` as soon as the batch-former has leased it. */
export async function failLeased(store: StoreConnection, id: string, failure?: Failure): Promise<void> {
  const inbox = openInbox(store, () => fake);
  const error = { code: 'internal', message: 'the engine failed' } as const;
  for (;;) {
    const messages = await inbox.next(10);
    if (messages.length === 0) throw new Error(`${id} was not leased`);
    const requests = messages.flatMap((message) => (message.type === 'run' ? message.requests : []));
    const leased = requests.find(({ envelope }) => envelope.id === id);
    if (leased === undefined) continue;
    inbox.close();
    const delivery = { id, token: leased.token };
    await writeBatch(store, fake, [{ type: 'end', delivery, end: { state: 'failed', error, failure } }], {
      batch: ++batches,
    });
    return;
  }
}
