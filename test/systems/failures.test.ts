/** Killed engines, killed batch-formers and frozen workers: each request ends once, with unchanged bytes. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { listDead, readRequest, readStats } from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import {
  ended,
  isStep,
  make,
  fetchImage,
  poll,
  type ServerEvent,
  stepsOf,
  stream,
  submit,
  typesOf,
} from '../e2e/client.ts';
import { openSystem, longWorkerTtl, type System } from '../e2e/system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 200, seed: 11, preview: 'off' };
const quick = { ...long, num_inference_steps: 4 };

function isProgressOrFailed({ event }: ServerEvent): boolean {
  return event === 'progress' || event === 'failed';
}

function signalEngine(system: System, signal: NodeJS.Signals): void {
  const worker = String(system.part('worker').process.pid);
  process.kill(Number(execFileSync('pgrep', ['-P', worker], { encoding: 'utf8' }).trim()), signal);
}

function kills(events: readonly ServerEvent[]): number {
  return events.filter(({ event }) => event === 'killed').length;
}

async function attempts(system: System, id: string): Promise<number> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.attempts : -1;
}

it('leases a request once when the batch-former is killed while it waits to fill a batch', async () => {
  const system = await openSystem({ parts: ['api', 'janitor', 'worker'] });
  const slow = await system.start('batch-former', { BATCH_TIMEOUT_MS: '60000' });
  const first = await submit(system.url, { ...long, n: 2 });
  await stream(system.url, first, { until: isStep(1) });
  // The worker is busy and has free rows.
  const id = await submit(system.url, quick);
  await slow.kill();
  expect((await poll(system.url, id)).status).toBe('queued');
  await system.start('batch-former');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
  expect(await attempts(system, id)).toBe(1);
  expect(await ended(system.url, first)).toBe('succeeded');
});

it('drops its requests, registers again and draws the same bytes when a frozen worker was reaped', async () => {
  const system = await openSystem({ environment: { WORKER_TTL_MS: '5000' } });
  const expected = await make(system.url, long);
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep(20) });
  const { process: worker } = system.part('worker');
  worker.kill('SIGSTOP');
  // The engine goes on meanwhile, so the worker finds many messages from it when it continues.
  await vi.waitFor(async () => expect((await poll(system.url, id)).status).toBe('queued'), 30_000);
  worker.kill('SIGCONT');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
  expect(await attempts(system, id)).toBe(1);
  expect(readFileSync(system.logFile, 'utf8')).toContain('reaped while alive');
  expect(await readStats(system.store, 'emoji-sd')).toMatchObject({ workers: { busy: 0, idle: 1 }, slots: 8 });
});

it.each([
  ['killed', 'SIGKILL', longWorkerTtl],
  ['frozen', 'SIGSTOP', { ...longWorkerTtl, ENGINE_TIMEOUT_S: '6' }],
] as const)(
  'restarts a %s engine within the same worker and resumes the request',
  async (_how, signal, environment) => {
    const system = await openSystem({ environment });
    const expected = await make(system.url, long);
    const id = await submit(system.url, long);
    await stream(system.url, id, { until: isStep(20) });
    const worker = system.part('worker').process.pid!;
    signalEngine(system, signal);
    const events = await stream(system.url, id);
    expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
    expect((await fetchImage(system.url, id)).equals(expected)).toBe(true);
    // The delivery had made progress, so it does not count as an attempt.
    expect(await attempts(system, id)).toBe(1);
    expect(system.part('worker').process.pid).toBe(worker);
  },
  120_000,
);

it('fails a request that crashes every engine and lists it as dead, unlike its batch neighbor', async () => {
  // Without checkpoints each delivery starts over, so each loss counts as an attempt.
  const system = await openSystem({ environment: { ...longWorkerTtl, CHECKPOINT_STEPS: '0' } });
  const [killer, neighbour] = await Promise.all([submit(system.url, long), submit(system.url, { ...long, seed: 12 })]);
  let last: ServerEvent | undefined;
  const seen: ServerEvent[] = [];
  while (last?.event !== 'failed') {
    const lastEventId = last?.id;
    const events = await stream(system.url, killer, {
      ...(lastEventId === undefined ? {} : { lastEventId }),
      until: isProgressOrFailed,
    });
    seen.push(...events);
    last = events.at(-1)!;
    // A delivery may send several steps: kill only once after each `started`.
    const starts = seen.filter(({ event }) => event === 'started').length;
    if (last.event === 'progress' && starts > kills(seen)) {
      signalEngine(system, 'SIGKILL');
      seen.push({ id: undefined, event: 'killed', data: '' });
    }
  }
  expect(typesOf(seen).filter((type) => type !== 'queued')).toEqual([
    'started',
    'killed',
    'started',
    'killed',
    'started',
    'killed',
    'failed',
  ]);
  expect(await poll(system.url, killer)).toMatchObject({ status: 'failed', error: { code: 'engine_error' } });
  expect((await listDead(system.store, 'emoji-sd', 10)).map(({ id }) => id)).toEqual([killer]);
  expect(await ended(system.url, neighbour)).toBe('succeeded');
});

it('stops a canceled request at its next step and frees its slot for the next request', async () => {
  const system = await openSystem({ environment: { BATCH_MAX_SIZE: '1' } });
  const first = await submit(system.url, long);
  const second = await submit(system.url, quick);
  await stream(system.url, first, { until: isStep(3) });
  expect(await poll(system.url, second)).toMatchObject({ status: 'queued', queue_position: 0 });
  const response = await fetch(`${system.url}/v1/predict/${first}`, { method: 'DELETE' });
  expect(response.status).toBe(202);
  expect(await ended(system.url, second)).toBe('succeeded');
  const events = await stream(system.url, first);
  expect(typesOf(events)).toEqual(['queued', 'started', 'canceled', '[DONE]']);
  expect(stepsOf(events).length).toBeLessThan(200);
});
