/** Prometheus metrics and health probes of every process, compared with what happened in the system. */
import { readStats } from '@darkroom/store';
import { type Exposition, parseExposition } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { ended, make, type ServerEvent, stream, submit, postJson } from '../e2e/client.ts';
import { openSystem, type Part, type PartName, type System } from '../e2e/system.ts';

const model = 'emoji-sd';
const quick = { prompt: 'a red apple on a white background', num_inference_steps: 4, seed: 11, preview: 'off' };
const long = { ...quick, num_inference_steps: 200 };
const all: readonly PartName[] = ['api', 'batch-former', 'janitor', 'webhook-sender', 'worker'];

async function scrape({ metricsUrl }: Part): Promise<Exposition> {
  const response = await fetch(`${metricsUrl}/metrics`);
  expect(response.status).toBe(200);
  return parseExposition(await response.text());
}

function isAtStep(step: number) {
  return ({ event, data }: ServerEvent): boolean =>
    event === 'progress' && (JSON.parse(data) as { step: number }).step >= step;
}

/** Returns how many requests went from one state to another, by `state>next`. */
async function transitions(system: System): Promise<Record<string, number>> {
  const page = await scrape(system.part('janitor'));
  const counted = page.series('darkroom_state_seconds_count').filter(({ value }) => value > 0);
  return Object.fromEntries(counted.map(({ labels: { state, next }, value }) => [`${state}>${next}`, value]));
}

it('counts images, a cancel and a killed worker in the metrics of all processes', async () => {
  // Long enough that a stalled worker on a busy machine is not reaped.
  const environment = { WORKER_TTL_MS: '5000' };
  const system = await openSystem({ parts: all, environment });
  const [firstWorker, former] = [system.part('worker'), system.part('batch-former')];
  await Promise.all([make(system.url, quick), make(system.url, { ...quick, n: 2 })]);

  const first = await scrape(firstWorker);
  const ofWorker = { app: 'worker', model };
  expect(first.value('darkroom_rows_joined_total', ofWorker)).toBe(3);
  expect(first.value('darkroom_rows_left_total', { ...ofWorker, reason: 'done' })).toBe(3);
  expect(first.value('darkroom_row_steps_total', ofWorker)).toBe(12);
  expect(first.value('darkroom_model_rows_total', ofWorker)).toBe(24);
  expect(first.value('darkroom_engine_rows', ofWorker)).toBe(0);
  const steps = first.value('darkroom_step_seconds_count', { ...ofWorker, shape: '128x128' })!;
  // The rows may have run fully batched, sequentially, or partly batched.
  expect(steps).toBeGreaterThanOrEqual(4);
  expect(steps).toBeLessThanOrEqual(12);
  expect(first.value('darkroom_batch_occupancy_ratio_sum', ofWorker)).toBe(12 / 8);

  const canceled = await submit(system.url, long);
  await stream(system.url, canceled, { until: isAtStep(2) });
  await fetch(`${system.url}/v1/predict/${canceled}`, { method: 'DELETE' });
  expect(await ended(system.url, canceled)).toBe('canceled');
  await expect
    .poll(async () =>
      (await scrape(firstWorker)).value('darkroom_rows_left_total', { ...ofWorker, reason: 'canceled' }),
    )
    .toBe(1);

  const survivor = await submit(system.url, long);
  await stream(system.url, survivor, { until: isAtStep(20) });
  await firstWorker.kill();
  await system.start('worker');
  expect(await ended(system.url, survivor)).toBe('succeeded');

  expect(await transitions(system)).toEqual({
    'queued>running': 5,
    'running>queued': 1,
    'running>succeeded': 3,
    'running>canceled': 1,
  });
  const janitor = await scrape(system.part('janitor'));
  const ofJanitor = { app: 'janitor', model };
  expect(janitor.value('darkroom_requeues_total', { ...ofJanitor, reason: 'worker_lost' })).toBe(1);
  expect(janitor.value('darkroom_workers_reaped_total', ofJanitor)).toBe(1);
  expect(janitor.value('darkroom_queue_requests', ofJanitor)).toBe(0);
  expect(janitor.value('darkroom_workers', { ...ofJanitor, state: 'silent' })).toBe(0);
  const seconds = janitor.value('darkroom_request_seconds_sum', { ...ofJanitor, outcome: 'succeeded' })!;
  const waiting = janitor.value('darkroom_state_seconds_sum', { ...ofJanitor, state: 'queued', next: 'running' })!;
  expect(seconds).toBeGreaterThan(waiting);

  const api = await scrape(system.part('api'));
  expect(api.value('darkroom_submissions_total', { app: 'api', model, outcome: 'admitted' })).toBe(4);
  const posts = { app: 'api', method: 'POST', route: '/v1/predict', status: '202' };
  expect(api.value('darkroom_http_request_seconds_count', posts)).toBe(4);
  await expect
    .poll(async () => (await scrape(system.part('api'))).series('darkroom_event_streams').map(({ value }) => value))
    .toEqual([0]);
  const leases = { app: 'batch-former', model, outcome: 'leased' };
  expect((await scrape(former)).value('darkroom_leases_total', leases)).toBe(5);
});

it('answers /live, /ready and /metrics with event loop lag in every process', async () => {
  const system = await openSystem({ parts: all });
  for (const part of system.parts) {
    expect((await fetch(`${part.metricsUrl}/live`)).status).toBe(200);
    // A process that did not run for a second reports Redis as unavailable at first.
    await expect.poll(async () => (await fetch(`${part.metricsUrl}/ready`)).status).toBe(200);
    const page = await scrape(part);
    expect(page.value('nodejs_eventloop_lag_seconds', { app: part.name })).toBeGreaterThanOrEqual(0);
    expect(page.value('darkroom_ready', { app: part.name })).toBe(1);
  }
  // Metrics are not exposed on the address that clients reach.
  expect((await fetch(`${system.url}/metrics`)).status).toBe(404);
});

describe.each([
  { writer: 'emoji-writer', keepsPrompts: true },
  { writer: 'emoji-writer-diffusion', keepsPrompts: false },
])('$writer', ({ writer, keepsPrompts }) => {
  it('counts prompt, cached and written tokens, and learns the usual length of texts for estimates', async () => {
    const system = await openSystem({ environment: { MODEL_DIR: `models/${writer}` } });
    const totals = async () => {
      const page = await scrape(system.part('worker'));
      const total = (name: string) => page.value(`darkroom_${name}_total`, { app: 'worker', model: writer });
      return {
        read: total('prompt_tokens'),
        cached: total('cached_prompt_tokens'),
        written: total('written_tokens'),
        calls: total('text_calls'),
      };
    };
    const chat = async (content: string): Promise<TextUsage> => {
      const instructions = {
        role: 'system',
        content: 'you write prompts for images of small things, in a few words',
      };
      const response = await postJson(`${system.url}/v1/chat/completions`, {
        model: writer,
        messages: [instructions, { role: 'user', content }],
      });
      return ((await response.json()) as { usage: TextUsage }).usage;
    };
    const first = await chat('something cold');
    expect(await totals()).toEqual({
      read: first.prompt_tokens,
      cached: 0,
      written: first.completion_tokens,
      calls: first.nfe,
    });
    const second = await chat('something sweet for a birthday party');
    const cached = second.prompt_tokens_details.cached_tokens;
    expect(cached > 0).toBe(keepsPrompts);
    expect(await totals()).toEqual({
      read: first.prompt_tokens + second.prompt_tokens - cached,
      cached,
      written: first.completion_tokens + second.completion_tokens,
      calls: first.nfe + second.nfe,
    });
    // Both texts ended long before max_tokens, so the learned share of max_tokens is small.
    const share = async () => (await readStats(system.store, writer)).pace!.share;
    await expect.poll(async () => (await share()).slow).toBeLessThan(0.6);
    expect((await share()).fast).toBeGreaterThan(0.1);
  });
});

interface TextUsage {
  prompt_tokens: number;
  prompt_tokens_details: { cached_tokens: number };
  completion_tokens: number;
  nfe: number;
}
