/** The whole system with docs/redis-users.acl (Redis ACL): one least-privilege user per app. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectStore, publishModel, signLinks, type StoreConnection } from '@darkroom/store';
import { freePorts, type RedisServer, startRedisServer } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { card } from '../../../apps/api/src/testing/test-api.ts';
import { failLeased, startFakeWorker } from '../fake-failure.ts';
import { ended, make, poll, postJson, stream, submit } from '../../e2e/client.ts';
import { startSystem, stopSystem, type PartName, type System } from '../../e2e/system.ts';

const users = readFileSync(new URL('../../../docs/redis-users.acl', import.meta.url), 'utf8');
const names = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const;
const quick = { prompt: 'a fox', num_inference_steps: 4, preview: { every: 2 } };
const long = { ...quick, num_inference_steps: 200, n: 2, seed: 5 };
const admin = randomUUID();
let server: RedisServer;
let system: System;
let port: number;

beforeAll(async () => {
  [port = 0] = await freePorts(1);
  server = await startRedisServer({
    args(directory) {
      // Adds a user for the test; the other users are those of the file, unchanged.
      writeFileSync(join(directory, 'users.acl'), `${users}user admin on >${admin} ~* &* +@all\n`);
      return ['--port', `${port}`, '--bind', '127.0.0.1', '--aclfile', 'users.acl'];
    },
  });
  const storeUrl = `redis://admin:${admin}@127.0.0.1:${port}`;
  // The key patterns of the file have the default prefix.
  system = await startSystem({ parts: [], storeUrl, environment: { REDIS_URL: storeUrl, REDIS_PREFIX: 'darkroom' } });
  for (const name of names) await start(name);
});

afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await server.stop();
});

function start(name: PartName) {
  const shown = { WEBHOOK_ALLOW_PRIVATE: 'true', RESULT_TTL_S: '600', MODEL_SHARDS: '2' };
  return system.start(name, { REDIS_URL: urlOf(name), ...shown });
}

function urlOf(name: PartName): string {
  return `redis://${name}:change-me-${name}@127.0.0.1:${port}`;
}

function connectAs(name: PartName): StoreConnection {
  const store = connectStore({ url: urlOf(name) });
  onTestFinished(() => store.close());
  return store;
}

/** Returns and clears the ACL log: commands that Redis refused to the apps. */
async function refusals(): Promise<string[]> {
  const entries = (await system.store.redis.call('ACL', 'LOG')) as (string | number)[][];
  await system.store.redis.call('ACL', 'LOG', 'RESET');
  return entries.map((fields) => {
    const valueOf = (name: string): unknown => fields[fields.indexOf(name) + 1];
    return `${String(valueOf('username'))}: ${String(valueOf('reason'))} ${String(valueOf('object'))}`;
  });
}

it('runs, cancels, expires, resumes and requeues requests without ACL refusals', { timeout: 300_000 }, async () => {
  await make(system.url, quick);
  const canceled = await submit(system.url, long);
  await stream(system.url, canceled, { until: ({ event }) => event === 'progress' });
  await fetch(`${system.url}/v1/predict/${canceled}`, { method: 'DELETE' });
  expect(await ended(system.url, canceled)).toBe('canceled');
  expect(await ended(system.url, await submit(system.url, { ...long, timeout_s: 1, n: 10 }))).toBe('expired');
  const body = { ...quick, webhook_url: 'http://127.0.0.1:9/', webhook_events: ['started', 'completed'] };
  const headers = { 'idempotency-key': 'k1', prefer: 'wait=60' };
  const again = await Promise.all([1, 2].map(() => postJson(`${system.url}/v1/predict`, body, headers)));
  expect(again.map(({ status }) => status)).toEqual([200, 200]);
  await expect.poll(async () => (await fetch(`${system.url}/v1/webhooks/deliveries`)).status).toBe(200);
  // A worker that is killed, a worker that stops, and a request that waits for the next worker.
  const resumed = await submit(system.url, long);
  await stream(system.url, resumed, { until: ({ event }) => event === 'progress' });
  await system.part('worker').kill();
  await start('worker');
  await stream(system.url, resumed, { until: ({ event }) => event === 'succeeded' });
  const givenBack = await submit(system.url, { ...long, seed: 6 });
  await stream(system.url, givenBack, { until: ({ event }) => event === 'progress' });
  await system.part('worker').stop();
  expect(await poll(system.url, givenBack)).toMatchObject({ status: 'queued' });
  const waiting = await submit(system.url, quick);
  await fetch(`${system.url}/v1/predict/${waiting}`, { method: 'DELETE' });
  await start('worker');
  expect(await ended(system.url, givenBack)).toBe('succeeded');
  const { metricsUrl } = system.part('janitor');
  expect(await (await fetch(`${metricsUrl}/metrics`)).text()).toContain('emoji-sd');
  expect(await refusals()).toEqual([]);
});

it('runs, streams and resumes texts of both text models without ACL refusals', async () => {
  for (const model of ['emoji-writer', 'emoji-writer-diffusion']) {
    const environment = { REDIS_URL: urlOf('worker'), MODEL_DIR: `models/${model}`, CHECKPOINT_STEPS: '7' };
    const worker = await system.start('worker', environment);
    const body = { model, prompt: 'once', max_tokens: 200, ignore_eos: true, n: 4, webhook_url: 'http://127.0.0.1:9/' };
    const id = await submit(system.url, body);
    await stream(system.url, id, { until: ({ event }) => event === 'delta' });
    await worker.stop();
    await system.start('worker', environment);
    expect(await ended(system.url, id)).toBe('succeeded');
    const chat = { model, messages: [{ role: 'user', content: 'something cold' }], stream: true };
    const response = await postJson(`${system.url}/v1/chat/completions`, chat);
    expect(await response.text()).toContain('[DONE]');
    expect(await ended(system.url, response.headers.get('x-request-id')!)).toBe('succeeded');
  }
  expect(await refusals()).toEqual([]);
});

it('runs all admin actions (pause, drain, retry, drop, restart, worker calls) without ACL refusals', async () => {
  const ask = async (path: string, method: 'GET' | 'POST' | 'DELETE' = 'POST'): Promise<unknown> => {
    const response = await fetch(`${system.url}/${path}`, { method });
    expect([path, response.status]).toEqual([path, expect.toSatisfy((status: number) => status < 300)]);
    return response.json();
  };
  onTestFinished(await startFakeWorker(system.store));
  await ask('admin/models/tiny/pause');
  await ask('admin/models/tiny/workers/fake/drain');
  const dead = [
    await submit(system.url, { ...quick, model: 'tiny' }),
    await submit(system.url, { ...quick, model: 'tiny' }),
  ];
  await ask('admin/models/tiny/workers/fake/resume');
  await ask('admin/models/tiny/resume');
  for (const id of dead) await failLeased(system.store, id);
  await ask('admin/dead-requests', 'GET');
  const { request_id: again } = (await ask(`admin/dead-requests/${dead[0]}/retry`)) as { request_id: string };
  await ask(`admin/dead-requests/${dead[1]}/drop`);
  await failLeased(system.store, again);
  expect(await poll(system.url, again)).toMatchObject({ status: 'failed', retry_of: dead[0] });
  const { workers } = (await ask('status', 'GET')) as { workers: { id: string; model: string }[] };
  const { id: worker } = workers.find(({ model }) => model === 'emoji-sd')!;
  expect(await ask(`admin/workers/${worker}/check_health`)).toMatchObject({ answers: [{ worker }] });
  await ask('admin/models/emoji-sd/restart');
  await expect.poll(() => readFileSync(system.logFile, 'utf8')).toContain('worker restarted');
  await make(system.url, quick);
  await publishModel(system.store, { ...card, id: 'stopped' });
  expect(await ask('admin/models/stopped', 'DELETE')).toMatchObject({ status: 'forgotten' });
  await ask('admin/queues/api/queues?activeQueue=queue&page=1&jobsPerPage=10', 'GET');
  await ask('admin/queues/api/queues/queue/metrics', 'GET');
  await ask('admin/queues/api/redis/stats', 'GET');
  expect(await refusals()).toEqual([]);
});

it.each(['api', 'webhook-sender'] as const)('allows %s to create and read the secret of signed links', async (name) => {
  const linkOf = await signLinks(connectAs(name), { owner: 'ann', fromMs: 0 });
  expect(linkOf('/v1')).toMatch(/^\/v1\?expires=3600&signature=/);
});

it.each<[PartName, string, string[]]>([
  ['api', 'change models', ['HSET', 'darkroom:models', 'x', '{}']],
  ['batch-former', "read a webhook's secret", ['HGETALL', 'darkroom:{_webhooks}:secrets']],
  ['worker', 'read the secret of signed links', ['GET', 'darkroom:{_webhooks}:link-secret']],
  ['batch-former', 'read idempotency keys', ['HGETALL', 'darkroom:idempotency::x']],
  ['worker', "read another model's requests", ['HGETALL', 'darkroom:v3:{other}:request:x']],
  ['worker', 'deliver webhooks', ['LPUSH', 'darkroom:{_webhooks}:queue:wait', 'x']],
  ['worker', 'subscribe to events', ['SUBSCRIBE', 'darkroom:v3:{emoji-sd}:events:x']],
  ['janitor', 'read images', ['HVALS', 'darkroom:v3:{emoji-sd}:output:x:0']],
  ['janitor', "read a webhook's secret", ['HGETALL', 'darkroom:{_webhooks}:secrets']],
  ['webhook-sender', 'read requests', ['HGETALL', 'darkroom:v3:{emoji-sd}:request:x']],
  ['webhook-sender', 'change models', ['HSET', 'darkroom:models', 'x', '{}']],
])('answers NOPERM when %s tries to %s', async (name, _what, [command = '', ...args]) => {
  await expect(connectAs(name).redis.call(command, ...args)).rejects.toThrow(/NOPERM/);
});

it.each(names)('answers NOPERM when %s runs administrative commands', async (name) => {
  const { redis } = connectAs(name);
  for (const command of [
    'CONFIG GET *',
    'KEYS *',
    'FLUSHALL',
    'ACL LIST',
    'MONITOR',
    'SHUTDOWN',
    'SCRIPT FLUSH',
    'GET x',
  ]) {
    const [verb = '', ...args] = command.split(' ');
    await expect(redis.call(verb, ...args)).rejects.toThrow(/NOPERM/);
  }
});
