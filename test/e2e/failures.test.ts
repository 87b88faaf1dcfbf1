/** A worker is killed or stopped in the middle of an image: the request ends once, with identical bytes. */
import { readFileSync } from 'node:fs';
import { readRequest } from '@darkroom/store';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ended, isStep, make, fetchImage, poll, stepsOf, stream, submit, typesOf } from './client.ts';
import { startSystem, stopSystem, type System } from './system.ts';

/** The prompt is longer than the model reads, so the next worker must also report how many tokens it cut. */
const long = {
  prompt: 'a red apple on a white background '.repeat(20),
  num_inference_steps: 120,
  seed: 11,
  preview: 'off',
};
const quick = { ...long, num_inference_steps: 4 };

let system: System;
/** Result of the long request without a failure. */
let undisturbed: { image: Buffer; cut: unknown };
beforeAll(async () => {
  // A worker that only stalls is not reaped within this time.
  system = await startSystem({ environment: { WORKER_TTL_MS: '5000' } });
  const id = await submit(system.url, long);
  await ended(system.url, id);
  undisturbed = { image: await fetchImage(system.url, id), cut: (await poll(system.url, id))['prompt_tokens_cut'] };
});
afterAll(() => stopSystem(system));

/** Returns the processes whose log lines carry the request's id. */
function appsThatLogged(system: System, id: string): Set<string> {
  const lines = readFileSync(system.logFile, 'utf8').split('\n').filter(Boolean);
  const entries = lines.map((line) => JSON.parse(line) as { app: string; request_id?: string });
  return new Set(entries.filter(({ request_id }) => request_id === id).map(({ app }) => app));
}

async function attempts(system: System, id: string): Promise<number> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.attempts : -1;
}

it("a killed worker's request resumes from its checkpoint on the next worker, with identical bytes", async () => {
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep(30) });
  await system.part('worker').kill();
  await system.start('worker');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  expect((await fetchImage(system.url, id)).equals(undisturbed.image)).toBe(true);
  expect(undisturbed.cut).toBeGreaterThan(0);
  expect(await poll(system.url, id)).toMatchObject({ prompt_tokens_cut: undisturbed.cut });
  // The second delivery resumes from a checkpoint; checkpoints are 10 steps apart.
  const secondStart = events.findLastIndex(({ event }) => event === 'started');
  const [resumedAt = 0] = stepsOf(events.slice(secondStart));
  expect(resumedAt).toBeGreaterThan(20);
  // The lost delivery had stored a checkpoint, so it does not count as an attempt.
  expect(await attempts(system, id)).toBe(1);
  expect(appsThatLogged(system, id)).toEqual(new Set(['api', 'batch-former', 'janitor', 'worker']));
});

it('a stopped worker requeues its rows with a checkpoint and counts no attempt', async () => {
  const id = await submit(system.url, long);
  await stream(system.url, id, { until: isStep(25) });
  await system.part('worker').stop();
  expect((await poll(system.url, id)).status).toBe('queued');
  await system.start('worker');
  const events = await stream(system.url, id);
  expect(typesOf(events)).toEqual(['queued', 'started', 'queued', 'started', 'succeeded', '[DONE]']);
  const steps = stepsOf(events);
  // No step is repeated. Steps before the client connected may be missing.
  expect(steps).toEqual([...new Set(steps)].toSorted((left, right) => left - right));
  expect(steps.at(-1)).toBe(long.num_inference_steps);
  expect((await fetchImage(system.url, id)).equals(undisturbed.image)).toBe(true);
  expect(await attempts(system, id)).toBe(1);
});

it('a deadline that passes in the middle of an image ends the request as expired', async () => {
  await make(system.url, quick);
  const id = await submit(system.url, { ...long, n: 10, timeout_s: 1 });
  expect(await ended(system.url, id)).toBe('expired');
  expect(await ended(system.url, await submit(system.url, quick))).toBe('succeeded');
});
