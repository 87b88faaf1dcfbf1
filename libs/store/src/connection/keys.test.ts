/** Names agree in three places: keys.ts, the Lua, and docs/redis-keys.md. */
import { readFileSync } from 'node:fs';
import { allKeys, openTestStore, seedRequest, seedRunning, seedWorker, testEnvelope, write } from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  answerCall,
  createWebhookId,
  dispatchRequests,
  enqueueWebhooks,
  mayMoveBusy,
  newRequestId,
  pauseModel,
  publishModel,
  readWebhookSecret,
  signLinks,
  type StoreConnection,
  sweepWorkers,
  takeReloadTurn,
  withdrawWorker,
} from '../index.ts';

const page = readFileSync(new URL('../../../../docs/redis-keys.md', import.meta.url), 'utf8');

/** `test-…:v2:{tiny}:request:tiny-01…` → `P:v2:{M}:request:R`, as the page writes it. */
function asDocumented(store: StoreConnection, key: string): string {
  return key
    .replace(store.prefix, 'P')
    .replace('{tiny}', '{M}')
    .replace(/tiny-[0-9a-z]{26}/, 'R')
    .replace(/:w\d$/, ':W')
    .replace(/:c1$/, ':C')
    .replace(/:R:\d+$/, ':R:<n>')
    .replace(/:minute:\d+$/, ':minute:<n>')
    .replace(/:(?<kind>line|bytes):$/, ':$<kind>:O')
    .replace(/:workers:(?:idle|busy|draining)$/, ':workers:loading')
    .replace(/:queue:.*/, ':queue:…');
}

const webhook = { url: 'https://example.com', events: ['started' as const], progressIntervalMs: 1000 };

/** A store in which all keys are that there may be. */
async function seedAll(): Promise<StoreConnection> {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never, { name: 'codec', bytes: new Uint8Array(1) });
  await newRequestId(store, { model: 'tiny', owner: '', nowMs: 1 });
  const { worker, delivery } = await seedRunning(store, { webhook });
  const preview = { data: Buffer.from('x'), contentType: 'image/webp' };
  const info = { index: 0, contentType: 'image/png', bytes: 1, chunks: 1 };
  await write(
    store,
    worker,
    { type: 'preview', delivery, progress: { index: 0, done: 1 }, of: { done: 1 }, ...preview },
    { type: 'checkpoint', delivery, index: 0, done: 1, data: Buffer.from('latents') },
    { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') },
  );
  const asked = testEnvelope();
  const attachments = new Map([['image', Buffer.from('png')]]);
  await seedRequest(store, { ...asked, options: { promptless: { ...asked, input: {} }, attachments } });
  await pauseModel(store, 'tiny');
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
  await takeReloadTurn(store, worker, 1000);
  await mayMoveBusy(store, 'tiny', 1000);
  await answerCall(store, worker, { call: 'c1', answer: {} });
  return store;
}

it('every key there may be is one of keys.ts and stands on the page', async () => {
  const store = await seedAll();
  // A failed request, one given back, a worker drained and taken for dead.
  const other = await seedRunning(store, { model: 'small', worker: { model: 'small', workerId: 'w2' } });
  const error = { code: 'internal', message: 'x' };
  await write(store, other.worker, { type: 'end', delivery: other.delivery, end: { state: 'failed', error } });
  const again = await seedRunning(store, { model: 'small', worker: { model: 'small', workerId: 'w2' } });
  await write(store, again.worker, { type: 'give-back', delivery: again.delivery, reason: 'worker_stopped' });
  for (const state of ['loading', 'ready'] as const)
    await seedWorker(store, { model: 'small', workerId: `w${state.length}`, state });
  await withdrawWorker(store, { model: 'small', workerId: 'w2' });
  for (let sweep = 0; sweep < 3; sweep++) await sweepWorkers(store, 'small', { intervalMs: 0, missedSweeps: 2 });
  const found = new Set(
    (await allKeys(store)).map((key) =>
      asDocumented(store, key.replace('{small}', '{tiny}').replace(/small-/, 'tiny-')),
    ),
  );
  const documented = new Set(
    [...page.matchAll(/`(?<key>P:(?:v2:\{M\}:)?[a-z][^`]*)`/g)].map((match) => match.groups!['key']!),
  );
  for (const key of found) expect(documented).toContain(key);
  const seldom = ['P:v2:{M}:wakeup', 'P:idempotency:O:<hash>', 'P:rate:submit:O', 'P:v2:load-failures'];
  expect([...documented].filter((key) => !seldom.includes(key) && !found.has(key))).toEqual([]);
});

it('nothing of an ended request is without a TTL, and nothing is kept of it but what may be fetched', async () => {
  const store = openTestStore();
  const { worker, delivery } = await seedRunning(store, { webhook });
  const info = { index: 0, contentType: 'image/png', bytes: 1, chunks: 1 };
  await write(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') });
  await write(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
  const own = (await allKeys(store)).filter((key) => key.includes(delivery.id));
  for (const key of own) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  expect(own.map((key) => asDocumented(store, key))).toEqual([
    'P:v2:{M}:events:R',
    'P:v2:{M}:input:R',
    'P:v2:{M}:output:R:<n>',
    'P:v2:{M}:request:R',
  ]);
});

it('every key of webhooks stands on the page', async () => {
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
