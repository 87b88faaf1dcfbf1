/** Redis goes away in the middle of a picture and comes back: the worker goes on meanwhile and delivers, once. */
import { EventEmitter, once } from 'node:events';
import { readRequest } from '@darkroom/store';
import { type PrivateRedis, startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { ended, make, picture, type ServerEvent, stream, submit } from '../../e2e/client.ts';
import { openSystem, patience, type StartSystemOptions, type System } from '../../e2e/system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 200, seed: 11, preview: 'off' };
const quick = { ...long, num_inference_steps: 4 };
let expected: Buffer | undefined;
/** The API says that Redis is away after 3 s, and is asked twice: shorter than the first, longer than the second. */
const longLived = patience;
/** Longer than a busy machine keeps a worker from its heartbeat, though. */
const shortLived = { HEARTBEAT_MS: '500', WORKER_TTL_MS: '3000' };

async function start(environment: Record<string, string>, parts?: StartSystemOptions['parts']) {
  const redis = await startPrivateRedis(['--appendonly', 'yes', '--appendfsync', 'always']);
  onTestFinished(() => redis.stop());
  const system = await openSystem({
    environment: { REDIS_URL: redis.url, ...environment },
    ...(parts === undefined ? {} : { parts }),
  });
  return { redis, system };
}

async function untilHealthIs(system: System, status: number): Promise<Record<string, unknown>> {
  let body: Record<string, unknown> = {};
  await expect
    .poll(
      async () => {
        const response = await fetch(`${system.url}/health`);
        body = (await response.json()) as Record<string, unknown>;
        return response.status;
      },
      { timeout: 20_000 },
    )
    .toBe(status);
  return body;
}

function isStep({ event }: ServerEvent): boolean {
  return event === 'progress';
}

/** The events of a request up to its end, and when its first step is among them. */
function follow({ url }: System, id: string): { events: Promise<ServerEvent[]>; firstStep: Promise<unknown> } {
  const steps = new EventEmitter();
  const until = (event: ServerEvent): boolean => {
    if (isStep(event)) steps.emit('step');
    return false;
  };
  return { firstStep: once(steps, 'step'), events: stream(url, id, { until }) };
}

function typesOf(events: readonly ServerEvent[]): string[] {
  return events.map(({ event, data }) => event ?? data).filter((type) => type !== 'progress' && type !== 'image');
}

const outages: Record<
  string,
  { begin: (redis: PrivateRedis) => void; end: (redis: PrivateRedis) => Promise<unknown> }
> = {
  hangs: {
    begin: (redis) => redis.process.kill('SIGSTOP'),
    end: async (redis) => redis.process.kill('SIGCONT'),
  },
  'is killed and started again': {
    begin: (redis) => redis.process.kill('SIGKILL'),
    end: (redis) => redis.restart(),
  },
};

it.each([
  ['hangs', 'shorter', longLived],
  ['hangs', 'longer', shortLived],
  ['is killed and started again', 'shorter', longLived],
  ['is killed and started again', 'longer', shortLived],
] as const)(
  'a Redis that %s, for a time %s than a worker may be silent: one delivery, one end, the same bytes',
  async (kind, _length, environment) => {
    const { redis, system } = await start(environment);
    expected ??= await make(system.url, long);
    const id = await submit(system.url, long);
    const { events, firstStep } = follow(system, id);
    await firstStep;
    outages[kind]!.begin(redis);
    expect(await untilHealthIs(system, 503)).toMatchObject({ status: 'unavailable' });
    expect((await fetch(`${system.url}/v1/predict/${id}`)).status).toBe(503);
    await outages[kind]!.end(redis);
    expect(typesOf(await events)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
    expect((await picture(system.url, id)).equals(expected)).toBe(true);
    expect(await readRequest(system.store, id)).toMatchObject({ request: { attempts: 1 } });
    await untilHealthIs(system, 200);
    await make(system.url, quick);
  },
);

it('a request whose time is over when Redis comes back ends as expired: that is when its worker gives up', async () => {
  const { redis, system } = await start({});
  await make(system.url, quick);
  // Too much for the time it has, and for the outage.
  const id = await submit(system.url, { ...long, n: 8, timeout_s: 3 });
  await stream(system.url, id, { until: isStep });
  redis.process.kill('SIGSTOP');
  await untilHealthIs(system, 503);
  redis.process.kill('SIGCONT');
  expect(typesOf(await stream(system.url, id))).toEqual(['queued', 'started', 'expired', '[DONE]']);
});

it('a worker that died while Redis was away is found afterwards', async () => {
  // Without checkpoints the delivery that was lost got no further than any.
  const { redis, system } = await start({ ...shortLived, CHECKPOINT_STEPS: '0' });
  expected ??= await make(system.url, long);
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep });
  redis.process.kill('SIGSTOP');
  await untilHealthIs(system, 503);
  await system.part('worker').kill();
  redis.process.kill('SIGCONT');
  await system.start('worker');
  expect(await ended(system.url, id)).toBe('succeeded');
  expect((await picture(system.url, id)).equals(expected)).toBe(true);
  expect(await readRequest(system.store, id)).toMatchObject({ request: { attempts: 2 } });
});

it('a master that has lost its replicas and so refuses writes: 503 meanwhile, and the picture is delivered afterwards', async () => {
  const { system } = await start(longLived);
  expected ??= await make(system.url, long);
  const id = await submit(system.url, long);
  const { events, firstStep } = follow(system, id);
  await firstStep;
  await system.store.redis.config('SET', 'min-replicas-to-write', '1');
  const body = JSON.stringify(quick);
  const headers = { 'content-type': 'application/json' };
  expect((await fetch(`${system.url}/v1/predict`, { method: 'POST', headers, body })).status).toBe(503);
  await system.store.redis.config('SET', 'min-replicas-to-write', '0');
  expect(typesOf(await events)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
  expect((await picture(system.url, id)).equals(expected)).toBe(true);
});
