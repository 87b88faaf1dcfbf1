/** Graceful shutdown: SIGTERM during startup, without Redis, during work, and with open API connections. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { readRequest, readStats } from '@darkroom/store';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ended, make, stream, submit, postJson } from '../e2e/client.ts';
import { openSystem, type Part, longWorkerTtl, type System } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, preview: 'off' };
const long = { ...quick, num_inference_steps: 200 };
const isStep = ({ event }: { event: string | undefined }): boolean => event === 'progress';

/**
 * Returns the pid of a worker's engine, or undefined without one. Matches the script name, so that the process is past
 * `fork`: freezing it earlier would block its parent.
 */
function engineOf({ process: { pid } }: Part): number | undefined {
  try {
    return Number(execFileSync('pgrep', ['-P', String(pid), '-f', 'engine-process'], { encoding: 'utf8' }));
  } catch {
    return undefined;
  }
}

/** Freezes the engine of a worker; returns its pid. The engine is killed when the test ends. */
async function freezeEngine(worker: Part): Promise<number> {
  await expect.poll(() => engineOf(worker), { interval: 5 }).toBeDefined();
  const engine = engineOf(worker)!;
  process.kill(engine, 'SIGSTOP');
  onTestFinished(() => void (isAlive(engine) && process.kill(engine, 'SIGKILL')));
  return engine;
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilLogged({ logFile }: System, text: string): Promise<void> {
  await expect.poll(() => readFileSync(logFile, 'utf8')).toContain(text);
}

/** Starts a server that never answers like Redis; `called` resolves after that many connection attempts. */
async function startFakeRedis(
  kind: 'hangs' | 'hangs up',
): Promise<{ url: string; called: (times: number) => Promise<void> }> {
  const sockets = new Set<Socket>();
  let calls = 0;
  const server = createServer((socket) => {
    calls++;
    sockets.add(socket.on('error', () => {}));
    if (kind === 'hangs up') socket.destroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    called: (times) => expect.poll(() => calls, { interval: 5 }).toBeGreaterThanOrEqual(times),
  };
}

const parts = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'] as const;

describe.each(['hangs', 'hangs up'] as const)('while Redis %s', (kind) => {
  it.each(parts)('%s stops at once on SIGTERM during startup, without errors', { timeout: 15_000 }, async (name) => {
    const system = await openSystem({ parts: [] });
    const redis = await startFakeRedis(kind);
    const part = system.launch(name, { REDIS_URL: redis.url, LOG_LEVEL: 'error' });
    // During a connection attempt, or between two attempts.
    await redis.called(kind === 'hangs' ? 1 : 6);
    await part.stop();
    expect([part.process.exitCode, part.stderr, readFileSync(system.logFile, 'utf8')]).toEqual([0, '', '']);
  });
});

it.each(parts.filter((name) => name !== 'worker'))(
  '%s stops without errors after it has started without Redis',
  { timeout: 15_000 },
  async (name) => {
    const system = await openSystem({ parts: [] });
    const redis = await startFakeRedis('hangs');
    const part = await system.start(name, { REDIS_URL: redis.url, LOG_LEVEL: 'error' });
    await part.stop();
    expect([part.process.exitCode, part.stderr, readFileSync(system.logFile, 'utf8')]).toEqual([0, '', '']);
  },
);

describe('a worker', () => {
  it('stops while its model is loading, and leaves no engine and no registration', { timeout: 15_000 }, async () => {
    const system = await openSystem({ parts: [] });
    const worker = system.launch('worker');
    const engine = await freezeEngine(worker);
    await expect.poll(() => readStats(system.store, 'emoji-sd')).toMatchObject({ workers: { loading: 1 } });
    await worker.stop();
    expect([worker.process.exitCode, worker.stderr, isAlive(engine)]).toEqual([0, '', false]);
    expect(await readStats(system.store, 'emoji-sd')).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0 } });
    expect(readFileSync(system.logFile, 'utf8')).not.toContain('"serving"');
  });

  it('exits at once on a second SIGTERM, and another worker runs its request', async () => {
    const system = await openSystem();
    const worker = system.part('worker');
    const id = await submit(system.url, long);
    await stream(system.url, id, { until: isStep });
    // A frozen engine keeps the shutdown pending until the second signal.
    const engine = await freezeEngine(worker);
    const stopped = worker.stop();
    await untilLogged(system, '"reason":"SIGTERM"');
    worker.process.kill('SIGTERM');
    await stopped;
    expect(worker.process.exitCode).toBe(143);
    process.kill(engine, 'SIGCONT');
    await expect.poll(() => isAlive(engine)).toBe(false);
    await system.start('worker');
    expect(await ended(system.url, id)).toBe('succeeded');
  });

  it('takes its engine down when it is killed', async () => {
    const system = await openSystem();
    const worker = system.part('worker');
    const id = await submit(system.url, long);
    await stream(system.url, id, { until: isStep });
    const engine = engineOf(worker)!;
    await worker.kill();
    await expect.poll(() => isAlive(engine)).toBe(false);
  });
});

it('answers waiting clients, closes its port and exits when an API stops, and its requests continue', async () => {
  const system = await openSystem({ environment: longWorkerTtl });
  const [stopping, other] = [system.part('api'), await system.start('api')];
  await make(stopping.url, quick);
  // Without a worker, the requests stay queued until the API has exited.
  await system.part('worker').stop();
  const post = (path: string, headers: Record<string, string>): Promise<Response> =>
    postJson(`${stopping.url}${path}`, { prompt: quick.prompt }, headers);
  const id = await submit(stopping.url, quick);
  const answers = Promise.all([
    fetch(`${stopping.url}/v1/predict/${id}?wait=60`),
    post('/v1/predict', { prefer: 'wait=60' }),
    post('/v1/images/generations', {}),
    post('/v1/images/generations', { 'idempotency-key': 'apple' }),
  ]);
  const events = await fetch(`${stopping.url}/v1/predict/${id}/events`);
  // All requests are stored, so the API waits for them.
  await expect.poll(() => readStats(system.store, 'emoji-sd')).toMatchObject({ queued: 4 });
  const stopped = stopping.stop();
  expect(await events.text()).toMatch(/retry: 1000\n\n$/);
  await expect(fetch(`${stopping.url}/health`)).rejects.toThrow('fetch failed');
  expect(stopping.process.exitCode).toBeNull();
  const [waited, preferred, generated, keyed] = await answers;
  expect([waited.status, waited.headers.get('retry-after')]).toEqual([202, '1']);
  expect(preferred.status).toBe(202);
  expect([generated.status, generated.headers.get('x-should-retry')]).toEqual([422, 'false']);
  expect([keyed.status, keyed.headers.get('x-should-retry')]).toEqual([422, 'true']);
  await stopped;
  expect([stopping.process.exitCode, stopping.stderr]).toEqual([0, '']);
  await system.start('worker');
  const { request_id: preferredId } = (await preferred.json()) as { request_id: string };
  const ids = [id, preferredId, ...[generated, keyed].map(({ headers }) => headers.get('x-request-id')!)];
  for (const each of ids) {
    expect(await ended(other.url, each)).toBe('succeeded');
    expect(await readRequest(system.store, each)).toMatchObject({ request: { attempts: 1 } });
  }
});
