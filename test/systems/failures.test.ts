/** Engines and formers are killed, and workers stand still, at the worst moments: every request ends once, with the picture it would have had. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { listDead, readRequest, readStats } from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import {
  ended,
  isStep,
  make,
  picture,
  poll,
  type ServerEvent,
  stepsOf,
  stream,
  submit,
  typesOf,
} from '../e2e/client.ts';
import { openSystem, patience, type System } from '../e2e/system.ts';

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

it('a former killed while a request waits for company: another one leases it, once', async () => {
  const system = await openSystem({ parts: ['api', 'janitor', 'worker'] });
  const slow = await system.start('batch-former', { BATCH_TIMEOUT_MS: '60000' });
  const first = await submit(system.url, { ...long, n: 2 });
  await stream(system.url, first, { until: isStep(1) });
  // The worker is busy with free rows.
  const id = await submit(system.url, quick);
  await slow.kill();
  expect((await poll(system.url, id)).status).toBe('queued');
  await system.start('batch-former');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'succeeded', '[DONE]']);
  expect(await attempts(system, id)).toBe(1);
  expect(await ended(system.url, first)).toBe('succeeded');
});

it('a worker taken for dead while it stands still: it drops what it had, registers again and draws the same bytes', async () => {
  const system = await openSystem({ environment: { WORKER_TTL_MS: '5000' } });
  const expected = await make(system.url, long);
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep(20) });
  const { process: worker } = system.part('worker');
  worker.kill('SIGSTOP');
  // Its engine goes on meanwhile, and has much to say when the worker goes on too.
  await vi.waitFor(async () => expect((await poll(system.url, id)).status).toBe('queued'), 30_000);
  worker.kill('SIGCONT');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  expect((await picture(system.url, id)).equals(expected)).toBe(true);
  expect(await attempts(system, id)).toBe(1);
  expect(readFileSync(system.logFile, 'utf8')).toContain('taken for dead while alive');
  expect(await readStats(system.store, 'emoji-sd')).toMatchObject({ workers: { busy: 0, idle: 1 }, slots: 8 });
});

it.each([
  ['killed', 'SIGKILL', patience],
  ['that hangs', 'SIGSTOP', { ...patience, ENGINE_TIMEOUT_S: '6' }],
] as const)(
  'an engine %s under its worker: the worker starts another and the request goes on',
  async (_how, signal, environment) => {
    const system = await openSystem({ environment });
    const expected = await make(system.url, long);
    const id = await submit(system.url, long);
    await stream(system.url, id, { until: isStep(20) });
    const worker = system.part('worker').process.pid!;
    signalEngine(system, signal);
    const events = await stream(system.url, id);
    expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
    expect((await picture(system.url, id)).equals(expected)).toBe(true);
    // It had got further, so that was no attempt.
    expect(await attempts(system, id)).toBe(1);
    expect(system.part('worker').process.pid).toBe(worker);
  },
);

it('a request that kills every engine ends as failed and can be found; its neighbour in the batch does not', async () => {
  // Without checkpoints no delivery gets further than the one before.
  const system = await openSystem({ environment: { ...patience, CHECKPOINT_STEPS: '0' } });
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
    // One delivery may have sent several steps: the next one begins after its `started`.
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
  expect(await poll(system.url, killer)).toMatchObject({ status: 'failed', error: { code: 'worker_lost' } });
  expect((await listDead(system.store, 'emoji-sd', 10)).map(({ id }) => id)).toEqual([killer]);
  expect(await ended(system.url, neighbour)).toBe('succeeded');
});

it('a canceled request leaves at its next step and makes room for the next', async () => {
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
