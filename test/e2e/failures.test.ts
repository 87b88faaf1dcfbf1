/** Processes are killed at the worst moments: every request ends once, with the picture it would have had. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { listDead, readRequest, readStats } from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import { ended, make, picture, poll, type ServerEvent, stream, submit } from './client.ts';
import { openSystem, patience, type System } from './system.ts';

const long = { prompt: 'a red apple on a white background', num_inference_steps: 200, seed: 11, preview: 'off' };
const quick = { ...long, num_inference_steps: 4 };
/** A worker that only stalls is not taken for dead within it. */
const ttls = { WORKER_TTL_MS: '5000' };
const isStep =
  (step: number) =>
  ({ event, data }: ServerEvent) =>
    event === 'progress' && (JSON.parse(data) as { step: number }).step >= step;

function typesOf(events: readonly ServerEvent[]): string[] {
  return events.map(({ event, data }) => event ?? data).filter((type) => type !== 'progress' && type !== 'image');
}

function stepsOf(events: readonly ServerEvent[]): number[] {
  return events
    .filter(({ event }) => event === 'progress')
    .map(({ data }) => (JSON.parse(data) as { step: number }).step);
}

function isProgressOrFailed({ event }: ServerEvent): boolean {
  return event === 'progress' || event === 'failed';
}

/** The processes whose log lines carry the request's id. */
function appsThatLogged(system: System, id: string): Set<string> {
  const lines = readFileSync(system.logFile, 'utf8').split('\n').filter(Boolean);
  const entries = lines.map((line) => JSON.parse(line) as { app: string; request_id?: string });
  return new Set(entries.filter(({ request_id }) => request_id === id).map(({ app }) => app));
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

it('a worker killed in mid-picture: the next one goes on from the checkpoint, to the same bytes, once', async () => {
  const system = await openSystem({ environment: ttls });
  // Longer than the model reads: the next worker says how much, too.
  const asked = { ...long, prompt: `${long.prompt} `.repeat(20) };
  const undisturbed = await submit(system.url, asked);
  await ended(system.url, undisturbed);
  const expected = await picture(system.url, undisturbed);
  const id = await submit(system.url, asked);
  await stream(system.url, id, { until: isStep(50) });
  await system.part('worker').kill();
  await system.start('worker');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  expect((await picture(system.url, id)).equals(expected)).toBe(true);
  const { prompt_tokens_cut: cut } = await poll(system.url, undisturbed);
  expect(cut).toBeGreaterThan(0);
  expect(await poll(system.url, id)).toMatchObject({ prompt_tokens_cut: cut });
  // The second delivery begins right after a checkpoint, which are 10 steps apart.
  const secondStart = events.findLastIndex(({ event }) => event === 'started');
  const [resumedAt = 0] = stepsOf(events.slice(secondStart));
  expect(resumedAt % 10).toBe(1);
  expect(resumedAt).toBeGreaterThan(40);
  expect(await attempts(system, id)).toBe(2);
  expect(appsThatLogged(system, id)).toEqual(new Set(['api', 'batch-former', 'janitor', 'worker']));
});

it('a former killed while it has a request wait for company: another one leases it at once, once', async () => {
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
    expect(await attempts(system, id)).toBe(2);
    expect(system.part('worker').process.pid).toBe(worker);
  },
);

it('a request that kills every engine ends as failed and can be found; its neighbour in the batch does not', async () => {
  const system = await openSystem({ environment: patience });
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

it('a worker that is stopped gives its rows back with a checkpoint, and no attempt is counted', async () => {
  const system = await openSystem({ environment: patience });
  const expected = await make(system.url, long);
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep(25) });
  await system.part('worker').stop();
  expect((await poll(system.url, id)).status).toBe('queued');
  await system.start('worker');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  const steps = stepsOf(events);
  expect(steps).toEqual(Array.from({ length: 200 }, (_value, step) => step + 1));
  expect((await picture(system.url, id)).equals(expected)).toBe(true);
  expect(await attempts(system, id)).toBe(1);
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

it('a deadline in mid-picture ends it as expired', async () => {
  const system = await openSystem();
  await make(system.url, quick);
  const id = await submit(system.url, { ...long, n: 10, timeout_s: 1 });
  expect(await ended(system.url, id)).toBe('expired');
  expect(await ended(system.url, await submit(system.url, quick))).toBe('succeeded');
});
