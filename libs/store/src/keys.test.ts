/** Names agree in three places: keys.ts, the Lua include, and docs/redis-keys.md. */
import { readFileSync } from 'node:fs';
import { allKeys, openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  admitRequest,
  createWebhookId,
  enqueueWebhooks,
  finishRequest,
  leaseBatch,
  openJobTaker,
  publishModel,
  readWebhookSecret,
  registerWorker,
  type StoreConnection,
  webhooksTag,
  writeCheckpoint,
  writeOutput,
} from './index.ts';

const page = readFileSync(new URL('../../../docs/redis-keys.md', import.meta.url), 'utf8');

/** `test-…:{tiny}:request:tiny-01…` → `P:{M}:request:R`, as the page writes it. */
function asDocumented(store: StoreConnection, id: string, key: string): string {
  const name = key.replace(store.prefix, 'P').replace('{tiny}', '{M}').replace(id, 'R').replace(/:w1$/, ':W');
  if (/^P:\{\w+\}:queue:/.test(name)) return name.replace(/:queue:.*/, ':queue:…');
  if (name.startsWith('P:{M}:workers:')) return 'P:{M}:workers:loading';
  return name.replace(/:R:\d+$/, ':R:<n>').replace(/:open:$/, ':open:O');
}

async function seedRunning(store: StoreConnection): Promise<{ id: string; token: string }> {
  await publishModel(store, { id: 'tiny' } as never);
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 8, ttlMs: 60_000, info: {} });
  const webhook = { url: 'https://example.com', events: ['started' as const], progressIntervalMs: 1000 };
  const envelope = testEnvelope({ webhook });
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const [delivery] = await taker.take(1);
  await taker.close();
  await leaseBatch(store, 'tiny', [delivery!], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  await writeCheckpoint(store, 'tiny', delivery!, 0, Buffer.from('latents'));
  const output = {
    index: 0,
    contentType: 'image/png',
    data: Buffer.from('png'),
    facts: {},
    chunkBytes: 3,
    timestampMs: 1,
  };
  await writeOutput(store, 'tiny', delivery!, output);
  return delivery!;
}

it('every key of a running request is one of keys.ts and stands on the page', async () => {
  const store = openTestStore();
  const { id } = await seedRunning(store);
  const keys = store.keysOf('tiny');
  const ofRequest = [keys.request(id), keys.events(id), keys.output(id, 0), keys.checkpoint(id, 0), keys.gone(id)];
  const ofModel = [
    `${store.prefix}:models`,
    keys.deadlines,
    keys.arrivals,
    keys.shares,
    keys.swept,
    keys.tally,
    keys.open(''),
    keys.workers.busy,
    keys.webhooks,
  ];
  const ofWorker = [keys.worker('w1'), keys.alive('w1'), keys.inbox('w1'), keys.leases('w1')];
  const found = await allKeys(store);
  expect(found.filter((key) => !key.startsWith(`${keys.base}:queue:`))).toEqual(
    [...ofRequest, ...ofModel, ...ofWorker].toSorted(),
  );
  for (const key of found) expect(page).toContain(`\`${asDocumented(store, id, key)}\``);
});

it('every key of webhooks stands on the page', async () => {
  const store = openTestStore();
  const { id: requestId } = testEnvelope();
  const id = createWebhookId({ requestId, sequence: 1, owner: '' });
  const message = { id, owner: '', requestId, type: 'request.started', url: 'https://example.com', payload: '{}' };
  await enqueueWebhooks(store, [message], { attempts: 1 });
  await readWebhookSecret(store, '');
  const found = (await allKeys(store)).map((key) => asDocumented(store, requestId, key));
  expect(new Set(found)).toEqual(new Set([`P:{${webhooksTag}}:queue:…`, `P:{${webhooksTag}}:secrets`]));
  for (const key of found) expect(page).toContain(`\`${key}\``);
});

it('every key on the page exists at some time of a request', () => {
  const kinds = [
    'request',
    'events',
    'output',
    'checkpoint',
    'gone',
    'queued',
    'deadlines',
    'arrivals',
    'workers',
    'worker',
    'alive',
    'drained',
    'inbox',
    'leases',
    'webhooks',
    'queue',
    'line',
    'lines',
    'open',
    'shares',
    'takings',
    'tally',
    'swept',
  ];
  const documented = [...page.matchAll(/^\| `P:\{M\}:(?<kind>[a-z]+)/gm)].map((match) => match.groups?.['kind'] ?? '');
  expect(new Set(documented)).toEqual(new Set(kinds));
});

it('nothing of an ended request is without a TTL', async () => {
  const store = openTestStore();
  const { id, token } = await seedRunning(store);
  await finishRequest(store, 'tiny', 'w1', { id, token }, { state: 'succeeded' });
  const immortal: string[] = [];
  for (const key of await allKeys(store))
    if (key.includes(id) && (await store.redis.pttl(key)) === -1) immortal.push(key);
  expect(immortal).toEqual([]);
  expect((await allKeys(store)).filter((key) => key.includes(id)).map((key) => asDocumented(store, id, key))).toEqual([
    'P:{M}:events:R',
    'P:{M}:gone:R',
    'P:{M}:output:R:<n>',
    'P:{M}:request:R',
  ]);
});
