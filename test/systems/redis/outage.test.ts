/** Redis is unavailable while an image is drawn: the worker continues, and writes the result once Redis is back. */
import { EventEmitter, once } from 'node:events';
import { readRequest } from '@darkroom/store';
import { type PrivateRedis, startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { ended, make, fetchImage, postJson, type ServerEvent, stream, submit } from '../../e2e/client.ts';
import { openSystem, longWorkerTtl, type StartSystemOptions, type System } from '../../e2e/system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 200, seed: 11, preview: 'off' };
const quick = { ...long, num_inference_steps: 4 };
let expected: Buffer | undefined;
/** An outage lasts about 6 s (two API timeouts of 3 s): shorter than the first worker TTL, longer than the second. */
const longLived = longWorkerTtl;
/** The TTL is still long enough that a worker on a busy machine sends its heartbeat in time. */
const shortLived = { WORKER_TTL_MS: '3000' };

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

/** Follows a request: `events` resolves with all events at its end, `firstStep` when the first step comes. */
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
  'delivers once, ends once and keeps the bytes when Redis %s for a time %s than WORKER_TTL_MS',
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
    expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
    expect(await readRequest(system.store, id)).toMatchObject({ request: { attempts: 1 } });
    await untilHealthIs(system, 200);
    await make(system.url, quick);
  },
);

it('expires a request whose timeout_s passed during a Redis outage', async () => {
  const { redis, system } = await start({});
  await make(system.url, quick);
  // Longer than its timeout and the outage together.
  const id = await submit(system.url, { ...long, n: 8, timeout_s: 3 });
  await stream(system.url, id, { until: isStep });
  redis.process.kill('SIGSTOP');
  await untilHealthIs(system, 503);
  redis.process.kill('SIGCONT');
  expect(typesOf(await stream(system.url, id))).toEqual(['queued', 'started', 'expired', '[DONE]']);
});

it('requeues the request of a worker that was killed during a Redis outage', async () => {
  // Without checkpoints the lost delivery made no progress, so it counts as an attempt.
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
  expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
  expect(await readRequest(system.store, id)).toMatchObject({ request: { attempts: 2 } });
});

it('answers 503 while the master refuses writes (NOREPLICAS), and delivers the image afterwards', async () => {
  const { system } = await start(longLived);
  expected ??= await make(system.url, long);
  const id = await submit(system.url, long);
  const { events, firstStep } = follow(system, id);
  await firstStep;
  await system.store.redis.config('SET', 'min-replicas-to-write', '1');
  expect((await postJson(`${system.url}/v1/predict`, quick)).status).toBe(503);
  await system.store.redis.config('SET', 'min-replicas-to-write', '0');
  expect(typesOf(await events)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
  expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
});
