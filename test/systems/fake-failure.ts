/** A worker in the tests' hands, in a system whose other parts are real: what it is leased fails when a test says so. */
import { heartbeatWorker, openInbox, publishModel, type StoreConnection, writeBatch } from '@darkroom/store';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { card } from '../../apps/api/src/testing/test-api.ts';

const fake = { model: card.id, workerId: 'fake', incarnation: 'first' };
let batches = 0;

/** Brings the model `tiny`, served by the worker `fake`, until it is told to stop. */
export async function startFakeWorker(store: StoreConnection): Promise<() => void> {
  await publishModel(store, card);
  await startWorker(store, { workerId: fake.workerId });
  const heart = setInterval(() => void heartbeatWorker(store, fake), 500);
  return () => clearInterval(heart);
}

/** Fails a request of `tiny` as soon as the former has leased it. */
export async function failLeased(store: StoreConnection, id: string): Promise<void> {
  const inbox = openInbox(store, fake);
  const error = { code: 'internal', message: 'the engine failed' } as const;
  for (;;) {
    const messages = await inbox.next(10);
    if (messages.length === 0) throw new Error(`${id} was not leased`);
    const requests = messages.flatMap((message) => (message.type === 'run' ? message.requests : []));
    const leased = requests.find(({ envelope }) => envelope.id === id);
    if (leased === undefined) continue;
    inbox.close();
    const delivery = { id, token: leased.token };
    await writeBatch(store, fake, [{ type: 'end', delivery, end: { state: 'failed', error } }], { batch: ++batches });
    return;
  }
}
