/** Admin routes over HTTP: answers, audit log and privacy. */
import {
  answerCall,
  connectStore,
  createWebhookId,
  enqueueWebhooks,
  heartbeatWorker,
  openInbox,
  registerWorker,
  pauseModel,
  readRequest,
  unregisterWorker,
} from '@darkroom/store';
import { openTestStore } from '@darkroom/testing';
import type { z } from '@hono/zod-openapi';
import { expect, it, onTestFinished } from 'vitest';
import { deadRequestListSchema, retriedSchema } from './admin-requests.ts';
import { hashKey } from '../auth/api-keys.ts';
import { errorSchema } from '../http/error-response.ts';
import { modelListSchema, requestSchema } from '../openapi/api-schemas.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { createTestApi, openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';
import type { ApiKey } from '../http/api-env.ts';

const plain = { weight: 1, requestsPerMinute: undefined, openRequests: undefined };
const olga: ApiKey = { name: 'olga', ...plain, isAdmin: true };
const error = { code: 'internal', message: 'the engine failed' } as const;

function openAdmin(options: TestApiOptions = {}): Promise<TestApi> {
  return openTestApi({ apiKeys: new Map([[hashKey('root'), olga]]), ...options });
}

async function ask(
  test: TestApi,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
): Promise<[status: number, body: unknown]> {
  const response = await test.api.request(`/admin${path}`, { method, headers: { Authorization: 'Bearer root' } });
  return [response.status, await response.json()];
}

async function codeOf(answer: Promise<[number, unknown]>): Promise<[number, string]> {
  const [status, body] = await answer;
  return [status, errorSchema.parse(body).error.code];
}

async function listed(test: TestApi): Promise<z.infer<typeof deadRequestListSchema>['data']> {
  return deadRequestListSchema.parse((await ask(test, 'GET', '/dead-requests'))[1]).data;
}

function audited(test: TestApi): Record<string, unknown>[] {
  return test.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg === 'admin action')
    .map(({ admin, action, model, worker, request_id, outcome, retried_as, method }) =>
      JSON.parse(JSON.stringify({ admin, action, model, worker, request_id, outcome, retried_as, method })),
    );
}

/** Fails a request with the prompt 'a secret fox' and returns its id. */
async function fail(test: TestApi): Promise<string> {
  await startWorker(test.store);
  const id = await test.submit({ prompt: 'a secret fox', timeout_s: 100 });
  await (await runNext(test.store)).finish({ state: 'failed', error });
  return id;
}

it('pauses a model: accepts requests without eta_seconds, until it is resumed', async () => {
  let nowMs = Date.now();
  const test = await openAdmin({ clock: { now: () => nowMs } });
  await startWorker(test.store);
  const range = { fast: 20, slow: 30 };
  const pace = { costMs: range, stepMs: range, remainingCost: 0 };
  await heartbeatWorker(test.store, { shard: 'tiny', workerId: 'w1', incarnation: 'first' }, { pace });
  expect(await (await test.post({ prompt: 'a fox' })).json()).toHaveProperty('eta_seconds');
  expect(await ask(test, 'POST', '/models/tiny/pause')).toEqual([200, { model: 'tiny', is_paused: true }]);
  expect(await ask(test, 'POST', '/models/tiny/pause')).toEqual([200, { model: 'tiny', is_paused: true }]);
  const accepted = await test.post({ prompt: 'a fox' });
  const answer = (await accepted.json()) as object;
  expect([accepted.status, answer]).toMatchObject([202, { is_possible: false, queue_position: 1 }]);
  expect(answer).not.toHaveProperty('eta_seconds');
  const models = async () => modelListSchema.parse(await (await test.api.request('/v1/models')).json()).data[0];
  nowMs += 1000;
  expect(await models()).toMatchObject({ is_possible: false, is_paused: true });
  expect(await ask(test, 'POST', '/models/tiny/resume')).toEqual([200, { model: 'tiny', is_paused: false }]);
  nowMs += 1000;
  expect(await models()).toMatchObject({ is_possible: true, is_paused: false });
  expect(audited(test)).toEqual([
    { admin: 'olga', action: 'pause model', model: 'tiny', outcome: 'paused' },
    { admin: 'olga', action: 'pause model', model: 'tiny', outcome: 'paused' },
    { admin: 'olga', action: 'resume model', model: 'tiny', outcome: 'resumed' },
  ]);
});

it('restarts all workers of a model and lists them', async () => {
  const test = await openAdmin();
  await startWorker(test.store);
  const inbox = openInbox(test.store, () => ({ shard: 'tiny', workerId: 'w1' }));
  onTestFinished(() => inbox.close());
  expect(await ask(test, 'POST', '/models/tiny/restart')).toEqual([202, { model: 'tiny', workers: ['w1'] }]);
  expect(await inbox.next(1)).toEqual([{ type: 'restart' }]);
  expect(audited(test)).toEqual([{ admin: 'olga', action: 'restart model', model: 'tiny', outcome: 'requested' }]);
});

it('drains a worker and resumes it', async () => {
  const test = await openAdmin();
  await startWorker(test.store);
  const path = '/models/tiny/workers/w1';
  const answer = { model: 'tiny', worker: 'w1' };
  expect(await ask(test, 'POST', `${path}/drain`)).toEqual([200, { ...answer, draining: true }]);
  expect(await ask(test, 'POST', `${path}/resume`)).toEqual([200, { ...answer, draining: false }]);
  expect(audited(test)).toEqual([
    { admin: 'olga', action: 'drain worker', ...answer, outcome: 'draining' },
    { admin: 'olga', action: 'resume worker', ...answer, outcome: 'resumed' },
  ]);
});

/** Answers the next call of a worker with `answer` and returns the command. */
async function answerNext(test: TestApi, workerId: string, answer: object): Promise<string> {
  const inbox = openInbox(test.store, () => ({ shard: 'tiny', workerId }));
  onTestFinished(() => inbox.close());
  for (;;) {
    const [message] = await inbox.next(1);
    if (message === undefined) continue;
    const { type, call } = message as { type: string; call: string };
    await answerCall(test.store, { shard: 'tiny', workerId }, { call, answer });
    return type;
  }
}

it('calls each worker of one start, and does not wait past the timeout', async () => {
  const test = await openAdmin({ callWaitMs: 500 });
  const ids = ['box-0', 'box-1', 'boxes'];
  for (const workerId of ids) {
    const worker = { shard: 'tiny', workerId, incarnation: 'first' };
    await registerWorker(test.store, worker, { state: 'ready', capacity: 8, info: {} });
  }
  const reply = { state: 'ready', isHealthy: true, latencyMs: 2, slots: 3, waitingRequests: 1 };
  const received = answerNext(test, 'box-0', reply);
  const who = { worker: 'box-0', model: 'tiny', state: 'ready' };
  const health = { healthy: true, latency_ms: 2, slots: 3, waiting_requests: 1 };
  const none = { healthy: false, latency_ms: null, slots: null, waiting_requests: null };
  expect(await ask(test, 'POST', '/workers/box/check_health')).toEqual([
    200,
    {
      answers: [
        { ...who, ...health },
        { ...who, worker: 'box-1', state: null, ...none },
      ],
    },
  ]);
  expect(await received).toBe('check_health');
  expect(audited(test)).toMatchObject([{ action: 'check_health worker', worker: 'box', outcome: '1 of 2 answered' }]);
});

it.each([
  [{ result: { rows: [3] } }, { result: { rows: [3] }, error: null }],
  [{ error: 'no such method' }, { result: null, error: 'no such method' }],
])('calls a method of an engine, and returns %j', async (reply, shown) => {
  const test = await openAdmin({ callWaitMs: 60_000 });
  await startWorker(test.store);
  const send = async (body: object): Promise<[number, unknown]> => {
    const headers = { Authorization: 'Bearer root', 'Content-Type': 'application/json' };
    const url = '/admin/workers/w1/rpc';
    const response = await test.api.request(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return [response.status, await response.json()];
  };
  const received = answerNext(test, 'w1', { state: 'ready', ...reply });
  const answer = { worker: 'w1', model: 'tiny', state: 'ready', ...shown };
  const body = { method: 'statistics', parameters: { unit: 'rows' } };
  expect(await send(body)).toEqual([200, { answers: [answer] }]);
  expect(await received).toBe('rpc');
  expect(audited(test)).toMatchObject([{ action: 'rpc worker', worker: 'w1', method: 'statistics' }]);
  expect(await send({ method: '' })).toMatchObject([
    400,
    { error: { message: expect.stringContaining('method is "", expected a text of 1 to 100 characters') as string } },
  ]);
});

it.each([
  ['sleep', {}, {}],
  ['wake', {}, {}],
  ['memory', { processBytes: 7 }, { process_bytes: 7, engine_bytes: null }],
])('sends %s to a worker of any shard', async (command, more, shown) => {
  const test = await openAdmin({ callWaitMs: 60_000 });
  await startWorker(test.store);
  const received = answerNext(test, 'w1', { state: 'vacating', ...more });
  const answer = { worker: 'w1', model: 'tiny', state: 'vacating', ...shown };
  expect(await ask(test, 'POST', `/workers/w1/${command}`)).toEqual([200, { answers: [answer] }]);
  expect(await received).toBe(command);
  expect(await codeOf(ask(test, 'POST', `/workers/w9/${command}`))).toEqual([404, 'worker_not_found']);
});

it('includes the load time in eta_seconds if all workers sleep', async () => {
  let nowMs = 1000;
  const test = await openAdmin({ clock: { now: () => nowMs } });
  await startWorker(test.store);
  const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
  // The load time of 7 s is added if no worker has the model in memory.
  const range = { fast: 20, slow: 30 };
  await heartbeatWorker(test.store, worker, { pace: { costMs: range, stepMs: range, remainingCost: 0 } });
  await registerWorker(test.store, worker, { state: 'asleep', capacity: 8, info: {}, loadMs: 7000 });
  const { request_id: id } = (await (await test.post({ prompt: 'a fox' })).json()) as { request_id: string };
  const earliest = async (): Promise<number> => {
    const polled = await test.api.request(`/v1/predict/${id}`);
    return ((await polled.json()) as { eta_seconds: { min: number } }).eta_seconds.min;
  };
  const asleep = await earliest();
  await registerWorker(test.store, worker, { state: 'ready', capacity: 8, info: {} });
  nowMs += 1000;
  expect(asleep - (await earliest())).toBeCloseTo(7);
});

it('returns 404 for unknown models and workers, and stores nothing for them', async () => {
  const test = await openAdmin();
  const before = await test.store.redis.keys(`${test.store.prefix}:*`);
  for (const verb of ['pause', 'resume', 'restart'])
    expect(await codeOf(ask(test, 'POST', `/models/other/${verb}`))).toEqual([404, 'model_not_found']);
  for (const verb of ['drain', 'resume']) {
    expect(await codeOf(ask(test, 'POST', `/models/tiny/workers/w9/${verb}`))).toEqual([404, 'worker_not_found']);
    expect(await codeOf(ask(test, 'POST', `/models/other/workers/w1/${verb}`))).toEqual([404, 'model_not_found']);
  }
  expect(await test.store.redis.keys(`${test.store.prefix}:*`)).toEqual(before);
});

it('lists dead requests without their inputs', async () => {
  const test = await openAdmin();
  const id = await fail(test);
  const [, body] = await ask(test, 'GET', '/dead-requests');
  expect(JSON.stringify(body)).not.toContain('fox');
  expect(await listed(test)).toMatchObject([
    {
      request_id: id,
      model: 'tiny',
      owner: '',
      attempts: 1,
      code: 'internal',
      reason: error.message,
      is_retryable: true,
    },
  ]);
});

it('shows the error of a request to operators, and only its code to the client', async () => {
  const test = await openAdmin({ store: openTestStore({ maxAttempts: 2 }) });
  const id = await test.submit({ prompt: 'a fox' });
  await startWorker(test.store);
  const lost = { code: 'out_of_memory', message: 'threw: CUDA error: out of memory at layer 7' } as const;
  const details = 'Error: threw\n    at draw (module.py:7)';
  const failure = { ...lost, worker: 'w1' };
  for (const [status, error] of [
    ['queued', null],
    ['failed', { code: 'out_of_memory', message: 'Failed in all 2 attempts: out of memory.' }],
  ] as const) {
    await (await runNext(test.store)).requeue({ ...lost, details });
    const view = { request_id: id, status, attempts: status === 'queued' ? 1 : 2, error };
    expect(await ask(test, 'GET', `/requests/${id}`)).toEqual([200, { ...view, failure: { ...failure, details } }]);
    const seen = [`/v1/predict/${id}`, ...(error === null ? [] : [`/v1/predict/${id}/events`])].map(async (path) =>
      (await test.api.request(path)).text(),
    );
    expect((await Promise.all(seen)).join('')).not.toMatch(/CUDA|layer 7|w1|module\.py/);
  }
  const [dead] = await listed(test);
  expect([dead?.request_id, dead?.code, dead?.failure]).toEqual([id, 'out_of_memory', failure]);
  await test.store.redis.del(test.store.keysOf('tiny').request(id));
  expect(await ask(test, 'GET', `/requests/${id}`)).toEqual([
    200,
    {
      request_id: id,
      status: 'failed',
      attempts: null,
      error: { code: 'out_of_memory', message: 'Failed in all 2 attempts: out of memory.' },
      failure: { ...failure, details },
    },
  ]);
  await ask(test, 'POST', `/dead-requests/${id}/drop`);
  expect(await codeOf(ask(test, 'GET', `/requests/${id}`))).toEqual([410, 'request_gone']);
  expect(await codeOf(ask(test, 'GET', `/requests/${id.slice(0, -1)}`))).toEqual([404, 'request_not_found']);
});

it('retries a dead request as a new one; each names the other', async () => {
  const test = await openAdmin();
  const id = await fail(test);
  const [status, body] = await ask(test, 'POST', `/dead-requests/${id}/retry`);
  expect(status).toBe(202);
  const { request_id: again, ...rest } = retriedSchema.parse(body);
  expect(rest).toEqual({ retry_of: id, is_new: true });
  expect(await ask(test, 'POST', `/dead-requests/${id}/retry`)).toEqual([
    202,
    { request_id: again, retry_of: id, is_new: false },
  ]);
  const view = async (of: string) => requestSchema.parse(await (await test.api.request(`/v1/predict/${of}`)).json());
  expect(await view(id)).toMatchObject({ status: 'failed', retried_as: again });
  expect(await view(again)).toMatchObject({
    status: 'queued',
    retry_of: id,
    parameters: { prompt: 'a secret fox' },
  });
  expect(await listed(test)).toEqual([]);
  const running = await runNext(test.store);
  await running.output(0, Buffer.from('png'));
  await running.finish();
  expect(await view(again)).toMatchObject({ status: 'succeeded' });
  expect(await view(id)).toMatchObject({ status: 'failed' });
  expect(audited(test)[0]).toEqual({
    admin: 'olga',
    action: 'retry request',
    request_id: id,
    outcome: 'retried',
    retried_as: again,
  });
});

it('drops a dead request: its id returns 410', async () => {
  const test = await openAdmin();
  const id = await fail(test);
  expect(await ask(test, 'POST', `/dead-requests/${id}/drop`)).toEqual([200, { request_id: id, status: 'dropped' }]);
  expect((await test.api.request(`/v1/predict/${id}`)).status).toBe(410);
  expect((await test.api.request(`/v1/predict/${id}/events`)).status).toBe(410);
  expect(await codeOf(ask(test, 'POST', `/dead-requests/${id}/drop`))).toEqual([410, 'request_gone']);
  expect(await codeOf(ask(test, 'POST', `/dead-requests/${id}/retry`))).toEqual([410, 'request_gone']);
  expect(await listed(test)).toEqual([]);
});

it('rejects requests that have not failed, and unknown ones', async () => {
  const test = await openAdmin();
  await pauseModel(test.store, 'tiny');
  const id = await test.submit();
  for (const verb of ['retry', 'drop']) {
    expect(await codeOf(ask(test, 'POST', `/dead-requests/${id}/${verb}`))).toEqual([409, 'request_not_failed']);
    for (const unknown of ['tiny-00000000000000000000000000', 'what'])
      expect(await codeOf(ask(test, 'POST', `/dead-requests/${unknown}/${verb}`))).toEqual([404, 'request_not_found']);
  }
  expect(await readRequest(test.store, id)).toMatchObject({ request: { state: 'queued' } });
});

it('returns 409 for a retry if the input is not stored', async () => {
  const test = await openAdmin({ config: { storePrompts: false } });
  const id = await fail(test);
  expect(await listed(test)).toMatchObject([{ request_id: id, is_retryable: false }]);
  expect(await codeOf(ask(test, 'POST', `/dead-requests/${id}/retry`))).toEqual([409, 'input_not_kept']);
});

it('deletes the prompts of a retry too if STORE_PROMPTS is off', async () => {
  const test = await openAdmin();
  const id = await fail(test);
  const strict = await openAdmin({ store: test.store, config: { storePrompts: false } });
  await ask(strict, 'POST', `/dead-requests/${id}/retry`);
  await (await runNext(test.store)).finish({ state: 'failed', error });
  const [dead] = await listed(test);
  const view = await (await test.api.request(`/v1/predict/${dead!.request_id}`)).json();
  expect(requestSchema.parse(view).parameters.prompt).toBeNull();
});

it('shows webhook deliveries on the board, read-only and without private data', async () => {
  const test = await openAdmin();
  const requestId = await test.submit({ prompt: 'a secret fox' });
  const message = {
    id: createWebhookId(requestId, 1, ''),
    owner: '',
    requestId,
    type: 'request.started',
    url: 'https://example.com/?token=hidden',
    payload: '{"hidden":true}',
  };
  await enqueueWebhooks(test.store, [message], { attempts: 1 });
  const headers = { Authorization: 'Bearer root' };
  const look = async (path: string): Promise<string> => {
    const response = await test.api.request(`/admin/queues/api/queues${path}`, { headers });
    expect(response.status).toBe(200);
    return response.text();
  };
  for (const page of await Promise.all(['?activeQueue=queue', `/queue/${message.id}`].map(look))) {
    expect(page).toContain(requestId);
    expect(page).toContain('request.started');
    expect(page).not.toMatch(/fox|hidden/);
  }
  const methods = test.api.routes.filter(({ path }) => path.startsWith('/admin/queues')).map(({ method }) => method);
  expect(new Set(methods)).toEqual(new Set(['ALL', 'GET']));
  const pause = await test.api.request('/admin/queues/api/queues/queue/pause', { method: 'PUT', headers });
  expect(pause.status).toBe(405);
  expect(await test.store.deliveries().isPaused()).toBe(false);
});

it('answers 503 for the board while Redis is away', async () => {
  const store = connectStore({ url: 'unix:///nowhere/redis.sock' });
  onTestFinished(() => store.close());
  const test = createTestApi({ store, apiKeys: new Map([[hashKey('root'), olga]]), storeWaitMs: 50 });
  const headers = { Authorization: 'Bearer root' };
  const response = await test.api.request('/admin/queues/api/queues', { headers });
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
});

it('deletes an unused model at once, and keeps the results of its requests', async () => {
  const test = await openAdmin();
  const id = await fail(test);
  const forget = () => ask(test, 'DELETE', '/models/tiny');
  expect(await codeOf(forget())).toEqual([409, 'model_in_use']);
  await unregisterWorker(test.store, { shard: 'tiny', workerId: 'w1', incarnation: 'first' });
  const waiting = await test.submit({ timeout_s: 100 });
  const [status, body] = await forget();
  expect([status, errorSchema.parse(body).message]).toEqual([
    409,
    'Model tiny cannot be forgotten: 1 of its requests wait or run: cancel them, or let them end.',
  ]);
  expect((await test.api.request(`/v1/predict/${waiting}`, { method: 'DELETE' })).status).toBe(200);
  expect(await forget()).toEqual([200, { model: 'tiny', status: 'forgotten' }]);
  expect(await (await test.api.request('/v1/models')).json()).toMatchObject({ data: [] });
  expect(await codeOf(forget())).toEqual([404, 'model_not_found']);
  const polled = await test.api.request(`/v1/predict/${id}`);
  expect([polled.status, await polled.json()]).toMatchObject([200, { status: 'failed' }]);
  expect(await codeOf(ask(test, 'POST', `/dead-requests/${id}/retry`))).toEqual([404, 'model_not_found']);
  expect(audited(test).map(({ action, outcome }) => [action, outcome])).toEqual([
    ['forget model', 'in-use'],
    ['forget model', 'in-use'],
    ['forget model', 'forgotten'],
    ['retry request', 'forgotten'],
  ]);
});

it('answers 404 for a model that another replica has just deleted, and stores nothing', async () => {
  const test = await openAdmin({ clock: { now: () => 1_700_000_000_000 } });
  const other = test.replica();
  await (await other.post({ model: 'tiny', prompt: 'a fox' })).json();
  const [id] = await test.store.redis.zrange(test.store.keysOf('tiny').waiting, '0', '-1');
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  expect(await ask(test, 'DELETE', '/models/tiny')).toMatchObject([200, {}]);
  const late = await other.post({ model: 'tiny', prompt: 'a fox' });
  expect([late.status, await late.json()]).toMatchObject([404, { error: { code: 'model_not_found' } }]);
  expect(await test.store.redis.zcard(test.store.keysOf('tiny').waiting)).toBe(0);
});
