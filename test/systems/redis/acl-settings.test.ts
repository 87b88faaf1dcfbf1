/** docs/redis-users.acl (Redis ACL) in one system with every setting that makes processes use more keys or commands. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { configurationDocument } from '@darkroom/config';
import { expect, it, onTestFinished } from 'vitest';
import { openSystem, longWorkerTtl, type System } from '../../e2e/system.ts';

/** Settings that change no Redis key or command: numbers, addresses, devices, and settings local to a process. */
const addNoKeys = new Set(
  `REDIS_URL REDIS_SENTINEL_PASSWORD REDIS_PREFIX LOG_LEVEL LOG_FILE METRICS_HOST OTEL_EXPORTER_OTLP_ENDPOINT
  MAX_ATTEMPTS PORT HOST QUEUE_MAX_LENGTH MAX_BODY_BYTES MAX_INPUT_PIXELS REQUEST_TIMEOUT_S
  API_KEYS OPEN_ACCESS ALLOWED_HOSTS CORS_ORIGINS PUBLIC_URL TRUSTED_PROXIES
  BATCH_MAX_SIZE BATCH_TIMEOUT_MS
  UPSTREAM_URL UPSTREAM_API UPSTREAM_KEY UPSTREAM_SLOTS UPSTREAM_WORKFLOW MODULE PYTHON ENGINE_MEMORY_MB MODEL_ID MODEL_DTYPE DEVICE
  LOW_MEMORY SAFETY_CHECKER KV_TOKENS CUDA_VISIBLE_DEVICES
  NUM_THREADS WORKER_ID ENGINE_TIMEOUT_S HF_TOKEN HF_ENDPOINT WORKER_TTL_MS
  INPUT_ALLOW_PRIVATE MODEL_DIR EXECUTOR`.split(/\s+/),
);
const adminKey = 'admin-key-of-olga-0123';
const carolKey = 'client-key-of-carol-0123';
const admin = { authorization: `Bearer ${adminKey}` };
const carol = { authorization: `Bearer ${carolKey}`, 'content-type': 'application/json' };

async function makeDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'darkroom-acl-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function allSettings() {
  const [bytes, keys] = [await makeDirectory(), join(await makeDirectory(), 'keys.json')];
  const sha256 = createHash('sha256').update(carolKey).digest('hex');
  const limits = { weight: 2, requests_per_minute: 1000, open_requests: 50 };
  writeFileSync(keys, JSON.stringify({ keys: [{ name: 'carol', sha256, ...limits }] }));
  return {
    BYTES_URL: pathToFileURL(bytes).href,
    API_KEYS_FILE: keys,
    ADMIN_KEYS: `olga:${adminKey}`,
    METRICS_PORT: '0',
    RESULT_TTL_S: '10',
    MODEL_SHARDS: '2',
    STORE_PROMPTS: 'false',
    UNSERVED_MODELS: 'refuse',
    DEFAULT_MODEL: 'emoji-sd',
    OWNER_MAX_BYTES: '500000000',
    WEBHOOK_ALLOW_PRIVATE: 'true',
    MODEL_DIRS: 'models/emoji-sd,models/emoji-writer',
    MEMORY_BUDGET_MB: '4000',
    NUM_WORKER_PROCESSES: '2',
    SLEEP_AFTER_S: '1',
    CHECKPOINT_STEPS: '2',
    JUDGE: './libs/executor/src/judge/__fixtures__/judge.mjs',
  };
}

async function ask(system: System, path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const response = await fetch(`${system.url}${path}`, init);
  expect([path, response.status, await response.clone().text()]).toEqual([
    path,
    expect.toBeOneOf([200, 201, 202]),
    expect.anything(),
  ]);
  return (await response.json()) as Record<string, unknown>;
}

async function predict(system: System, body: object, headers: Record<string, string> = {}): Promise<string> {
  const init = { method: 'POST', headers: { ...carol, ...headers }, body: JSON.stringify(body) };
  return (await ask(system, '/v1/predict', init))['request_id'] as string;
}

/** Reads the event stream of a request to its end; returns its text. */
async function ended(system: System, id: string): Promise<string> {
  return (await fetch(`${system.url}/v1/predict/${id}/events`, { headers: carol })).text();
}

const image = {
  prompt: 'a fox',
  num_inference_steps: 6,
  preview: { every: 2 },
  webhook_url: 'http://127.0.0.1:9/',
  webhook_events: ['started', 'progress', 'completed'],
};

it('classifies every setting: either tested here or listed as adding no keys or commands', async () => {
  const tried = Object.keys(await allSettings());
  const all = [...configurationDocument().matchAll(/^\| `(?<name>[A-Z_0-9]+)`/gm)].map(([, name]) => name!);
  expect(all.filter((name) => !tried.includes(name) && !addNoKeys.has(name))).toEqual([]);
});

it(
  'runs requests, links, webhooks, admin calls and the janitor with all settings, without NOPERM from Redis',
  { timeout: 240_000 },
  async () => {
    const environment = { ...longWorkerTtl, ...(await allSettings()) };
    const system = await openSystem({
      parts: ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'],
      environment,
    });
    await expect
      .poll(async () => JSON.stringify(await ask(system, '/v1/models', { headers: carol })), { timeout: 60_000 })
      .toContain('emoji-writer');
    const first = await predict(system, image, { 'idempotency-key': 'k1' });
    expect(await predict(system, image, { 'idempotency-key': 'k1' })).toBe(first);
    expect(await ended(system, first)).toContain('event: succeeded');
    const { images = [] } = (await ask(system, `/v1/predict/${first}`, { headers: carol })) as {
      images?: { url: string }[];
    };
    const file = await fetch(new URL(images[0]!.url, system.url));
    expect(file.status).toBe(200);
    for (const method of ['PUT', 'DELETE']) await ask(system, `/v1/predict/${first}/pin`, { method, headers: carol });
    await ask(system, '/v1/predict?status=succeeded', { headers: carol });
    const url = `data:image/png;base64,${Buffer.from(await file.arrayBuffer()).toString('base64')}`;
    const edited = await predict(system, { ...image, image: url, strength: 0.5 });
    const refused = await predict(system, { ...image, prompt: 'forbidden' });
    const text = await predict(system, { model: 'emoji-writer', prompt: 'once', max_tokens: 20, n: 2 });
    const canceled = await predict(system, { ...image, num_inference_steps: 200, n: 4 });
    await ask(system, `/v1/predict/${canceled}`, { method: 'DELETE', headers: carol });
    const ends = await Promise.all([edited, refused, text].map((id) => ended(system, id)));
    expect(ends).toEqual(
      ['succeeded', 'failed', 'succeeded'].map((state) => expect.stringContaining(`event: ${state}`)),
    );
    await ask(system, '/admin/dead-requests', { headers: admin });
    const added = { method: 'POST', headers: { ...carol, ...admin }, body: '{"name":"dave"}' };
    const { id: key } = await ask(system, '/admin/keys', added);
    await ask(system, '/admin/keys', { headers: admin });
    await ask(system, `/admin/keys/${String(key)}`, { method: 'DELETE', headers: admin });
    for (const action of ['restart', 'pause', 'resume'])
      await ask(system, `/admin/models/emoji-sd/${action}`, { method: 'POST', headers: admin });
    const statesOf = async () =>
      JSON.stringify(
        ((await ask(system, '/status', { headers: admin })) as { workers: { state: string }[] }).workers.map(
          ({ state }) => state,
        ),
      );
    await expect.poll(statesOf, { timeout: 60_000 }).toMatch(/^\["asleep"(?:,"asleep")*\]$/);
    expect(await ended(system, await predict(system, image))).toContain('event: succeeded');
    // Results expire after RESULT_TTL_S, and the janitor deletes their files.
    const filesOf = () => readdir(new URL(`${environment.BYTES_URL}/${system.prefix}`));
    expect((await filesOf()).length).toBeGreaterThan(0);
    await expect.poll(filesOf, { timeout: 60_000 }).toEqual([]);
    expect(await system.users!.refusals()).toEqual([]);
    expect(readFileSync(system.logFile, 'utf8')).not.toContain('NOPERM');
  },
);
