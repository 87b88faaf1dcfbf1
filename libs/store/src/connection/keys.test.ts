/** Key names must agree in three places: keys.ts, the Lua scripts and docs/redis-keys.md. */
import { readFileSync } from 'node:fs';
import {
  allKeys,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  addKey,
  answerCall,
  createWebhookId,
  dispatchRequests,
  enqueueWebhooks,
  forgetModel,
  claimBusyMove,
  newRequestId,
  pauseModel,
  publishModel,
  readWebhookSecret,
  signLinks,
  type StoreConnection,
  sweepWorkers,
  acquireRestartLock,
  drainByOperator,
} from '../index.ts';

const page = readFileSync(new URL('../../../../docs/redis-keys.md', import.meta.url), 'utf8');

/** Converts a key to the notation of the docs: `test-…:v3:{tiny}:request:tiny-01…` → `P:v3:{M}:request:R`. */
function asDocumented(store: StoreConnection, key: string): string {
  return key
    .replace(store.prefix, 'P')
    .replace('{tiny}', '{M}')
    .replace(/tiny-[0-9a-z]{26}/, 'R')
    .replace(/:w\d$/, ':W')
    .replace(/:c1$/, ':C')
    .replace(/:R:\d+$/, ':R:<n>')
    .replace(/:minute:\d+$/, ':minute:<n>')
    .replace(/:(?<kind>queued|bytes|listed|expiring):$/, ':$<kind>:O')
    .replace(/:workers:(?:idle|busy|draining)$/, ':workers:loading')
    .replace(/:queue:.*/, ':queue:…');
}

const webhook = { url: 'https://example.com', events: ['started' as const], progressIntervalMs: 1000 };

/** Seeds a store with nearly every kind of key. */
async function seedAll(): Promise<StoreConnection> {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never, { name: 'codec', bytes: new Uint8Array(1) });
  await newRequestId(store, { model: 'tiny', owner: '', nowMs: 1 });
  const { worker, delivery } = await seedRunning(store, { webhook });
  const preview = { data: Buffer.from('x'), contentType: 'image/webp' };
  const info = { index: 0, contentType: 'image/png', bytes: 1, chunks: 1 };
  await writeNow(
    store,
    worker,
    { type: 'preview', delivery, progress: { index: 0, done: 1 }, of: { done: 1 }, ...preview },
    { type: 'checkpoint', delivery, index: 0, done: 1, data: Buffer.from('latents') },
    { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') },
  );
  const envelope = testEnvelope();
  const attachments = new Map([['image', Buffer.from('png')]]);
  await seedRequest(store, {
    ...envelope,
    options: { promptless: { ...envelope, input: {} }, attachments, ownerMaxBytes: 1e9 },
  });
  await pauseModel(store, 'tiny');
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
  await acquireRestartLock(store, { model: 'tiny', workerId: 'w1' }, 1000);
  await claimBusyMove(store, 'tiny', 1000);
  await answerCall(store, worker, { call: 'c1', answer: {} });
  await forgetModel(store, 'unused');
  await addKey(store, { name: 'ann', sha256: '', weight: 1, requestsPerMinute: null, openRequests: null }, 1);
  return store;
}

it('every Redis key is built by keys.ts and documented in docs/redis-keys.md', async () => {
  const store = await seedAll();
  // Adds a failed request, a requeued one, and a drained worker that is then reaped.
  const other = await seedRunning(store, { model: 'small', worker: { model: 'small', workerId: 'w2' } });
  const error = { code: 'internal', message: 'x' };
  await writeNow(store, other.worker, { type: 'end', delivery: other.delivery, end: { state: 'failed', error } });
  const again = await seedRunning(store, { model: 'small', worker: { model: 'small', workerId: 'w2' } });
  await writeNow(store, again.worker, { type: 'give-back', delivery: again.delivery, reason: 'worker_stopped' });
  for (const state of ['loading', 'ready'] as const)
    await seedWorker(store, { model: 'small', workerId: `w${state.length}`, state });
  await drainByOperator(store, { shard: 'small', workerId: 'w2' });
  for (let sweep = 0; sweep < 3; sweep++) await sweepWorkers(store, 'small', { intervalMs: 0, missedSweeps: 2 });
  const found = new Set(
    (await allKeys(store)).map((key) =>
      asDocumented(store, key.replace(/\{(?:small|unused)\}/, '{tiny}').replace(/small-/, 'tiny-')),
    ),
  );
  const documented = new Set(
    [...page.matchAll(/`(?<key>P:(?:v3:\{M\}:)?[a-z][^`]*)`/g)].map((match) => match.groups!['key']!),
  );
  for (const key of found) expect(documented).toContain(key);
  const notSeeded = ['P:v3:{M}:wakeup', 'P:idempotency:O:<hash>', 'P:rate:submit:O', 'P:v3:load-failures'];
  expect([...documented].filter((key) => !notSeeded.includes(key) && !found.has(key))).toEqual([]);
});

it('an ended request leaves only keys with a TTL, and only those that clients can fetch', async () => {
  const store = openTestStore();
  const { worker, delivery } = await seedRunning(store, { webhook });
  const info = { index: 0, contentType: 'image/png', bytes: 1, chunks: 1 };
  await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') });
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
  const own = (await allKeys(store)).filter((key) => key.includes(delivery.id));
  for (const key of own) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  expect(own.map((key) => asDocumented(store, key))).toEqual([
    'P:v3:{M}:events:R',
    'P:v3:{M}:input:R',
    'P:v3:{M}:output:R:<n>',
    'P:v3:{M}:request:R',
  ]);
});

it('every webhook key is documented in docs/redis-keys.md', async () => {
  const store = openTestStore();
  const { id: requestId } = testEnvelope();
  const id = createWebhookId(requestId, 1, '');
  const message = { id, owner: '', requestId, type: 'request.started', url: 'https://example.com', payload: '{}' };
  await enqueueWebhooks(store, [message], { attempts: 1 });
  await readWebhookSecret(store, '');
  await signLinks(store, { owner: 'ann', fromMs: 0 });
  const found = new Set((await allKeys(store)).map((key) => asDocumented(store, key)));
  expect(found).toEqual(new Set(['P:{_webhooks}:link-secret', 'P:{_webhooks}:queue:…', 'P:{_webhooks}:secrets']));
  for (const key of found) expect(page).toContain(`\`${key}\``);
});
