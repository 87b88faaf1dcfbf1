import type { EventOf, ExecutorEvent } from '@darkroom/executor';
import { Metrics } from '@darkroom/service';
import { type Exposition, parseExposition, silentLogger } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { StepMeter } from './step-meter.ts';

const labels = { app: 'worker', model: 'tiny' };

function createMeter(): { meter: StepMeter; read: () => Promise<Exposition> } {
  const metrics = new Metrics({ app: 'worker', log: silentLogger() });
  const meter = new StepMeter({ metrics, model: 'tiny', capacity: 4 });
  return { meter, read: async () => parseExposition(await metrics.expose()) };
}

function stats(rows: number, { shapeKey = '8x8', stepMs = 20, modelRows = rows } = {}): EventOf<'stats'> {
  return { type: 'stats', shapeKey, rows, modelRows, tableSlots: rows, waitingRequests: 0, stepMs };
}

function progress(requestId: string, index = 0): ExecutorEvent {
  return { type: 'progress', requestId, index, done: 1, total: 9 };
}

function output(requestId: string, index = 0): ExecutorEvent {
  return { type: 'output', requestId, index, output: { data: new Uint8Array(), facts: {} } };
}

/** Rows that left, by reason; reasons without rows are omitted. */
function left(page: Exposition): Record<string, number> {
  const series = page.series('darkroom_rows_left_total').filter(({ value }) => value > 0);
  return Object.fromEntries(series.map(({ labels: { reason = '' }, value }) => [reason, value]));
}

it('counts steps, rows and occupancy', async () => {
  const { meter, read } = createMeter();
  meter.observe([stats(1, { modelRows: 2 }), progress('a')]);
  meter.observe([stats(4, { modelRows: 7 }), progress('a'), progress('b')]);
  const page = await read();
  expect(page.value('darkroom_step_seconds_count', { ...labels, shape: '8x8' })).toBe(2);
  expect(page.value('darkroom_step_seconds_sum', { ...labels, shape: '8x8' })).toBeCloseTo(0.04);
  expect(page.value('darkroom_row_steps_total', labels)).toBe(5);
  expect(page.value('darkroom_model_rows_total', labels)).toBe(9);
  expect(page.value('darkroom_batch_occupancy_ratio_bucket', { ...labels, le: '0.25' })).toBe(1);
  expect(page.value('darkroom_batch_occupancy_ratio_bucket', { ...labels, le: '1' })).toBe(2);
  expect(page.value('darkroom_batch_occupancy_ratio_sum', labels)).toBe(1.25);
});

it('counts tokens from zero, for steps that report them', async () => {
  const { meter, read } = createMeter();
  const names = ['prompt_tokens', 'cached_prompt_tokens', 'written_tokens', 'text_calls'];
  const totals = async () => {
    const page = await read();
    return names.map((name) => page.value(`darkroom_${name}_total`, labels));
  };
  expect(await totals()).toEqual([0, 0, 0, 0]);
  meter.observe([stats(1), { ...stats(2), tokens: { read: 9, cached: 4, written: 3, calls: 2 } }]);
  meter.observe([{ ...stats(2), tokens: { read: 1, cached: 0, written: 2, calls: 1 } }]);
  expect(await totals()).toEqual([10, 4, 5, 3]);
});

it('counts a row once when it joins and once when it leaves', async () => {
  const { meter, read } = createMeter();
  meter.observe([stats(3), progress('a', 0), progress('a', 1), progress('b')]);
  meter.observe([stats(3), progress('a', 0), progress('a', 1), progress('b')]);
  expect((await read()).value('darkroom_engine_rows', labels)).toBe(3);
  meter.observe([output('a', 0), output('a', 1), { type: 'request-done', requestId: 'a' }]);
  const page = await read();
  expect(page.value('darkroom_rows_joined_total', labels)).toBe(3);
  expect(left(page)).toEqual({ done: 2 });
  expect(page.value('darkroom_engine_rows', labels)).toBe(1);
});

it('counts the rows that leave by a cancel, a failure or a lost engine', async () => {
  const { meter, read } = createMeter();
  meter.observe(['a', 'b', 'c', 'd'].map((id) => progress(id)));
  meter.observe([progress('a', 1), output('a', 0), { type: 'request-canceled', requestId: 'a' }]);
  meter.observe([{ type: 'request-failed', requestId: 'b', code: 'internal', message: '' }]);
  // A request without a row in the engine removes none.
  meter.observe([{ type: 'request-canceled', requestId: 'e' }]);
  meter.observe([{ type: 'engine-lost', message: 'killed', requestIds: ['c', 'd'] }]);
  const page = await read();
  expect(left(page)).toEqual({ done: 1, canceled: 1, failed: 1, engine_lost: 2 });
  expect(page.value('darkroom_rows_joined_total', labels)).toBe(5);
  expect(page.value('darkroom_engine_rows', labels)).toBe(0);
  expect(page.value('darkroom_engines_lost_total', labels)).toBe(1);
});

it('counts lost leases, but not requests that were canceled or had ended', async () => {
  const { meter, read } = createMeter();
  for (const why of ['reaped', 'lost', 'lost', 'canceled', 'canceling', 'ended'] as const) meter.dropped(why);
  const series = (await read()).series('darkroom_leases_lost_total');
  expect(Object.fromEntries(series.map(({ labels: { reason = '' }, value }) => [reason, value]))).toEqual({
    reaped: 1,
    refused: 2,
  });
});

it('bounds the number of shapes with their own label', async () => {
  const { meter, read } = createMeter();
  for (let size = 1; size <= 100; size++) meter.observe([stats(1, { shapeKey: `${size}x8` })]);
  meter.observe([stats(1, { shapeKey: '1x8' })]);
  const page = await read();
  expect(page.series('darkroom_step_seconds_count')).toHaveLength(33);
  expect(page.value('darkroom_step_seconds_count', { ...labels, shape: 'other' })).toBe(68);
  expect(page.value('darkroom_step_seconds_count', { ...labels, shape: '1x8' })).toBe(2);
});
