import { expect, it } from 'vitest';
import type { EngineEvent } from '../executor-event.ts';
import { EventOutbox } from './event-outbox.ts';

/** Creates an outbox that receives the events of an engine with this step time. */
function createOutbox(stepMs = 30) {
  const sent: (readonly EngineEvent[])[] = [];
  let nowMs = 0;
  const send = (events: readonly EngineEvent[]): Promise<void> => {
    sent.push(events);
    return Promise.resolve();
  };
  const outbox = new EventOutbox({ send, now: () => nowMs });
  const stats: EngineEvent = { type: 'stats', shapeKey: '8x8', ...counts, stepMs };
  const step = (...events: EngineEvent[]): void | Promise<void> => {
    nowMs += stepMs;
    return outbox.push([stats, ...events]);
  };
  void outbox.push([stats]);
  const first = sent.splice(0);
  return { first, sent, outbox, stats, step };
}

const counts = { rows: 1, modelRows: 1, tableSlots: 1, waitingRequests: 0 };
const of = (requestId: string, index = 0) => ({ requestId, index });
const progress = (done: number, row = of('a')): EngineEvent => ({ type: 'progress', ...row, done, total: 20 });

it('sends progress ten times a second, with the stats of each step', async () => {
  const { step, stats, sent } = createOutbox(30);
  for (let done = 1; done <= 9; done++) await step(progress(done));
  const together = [stats, stats, stats, stats];
  expect(sent).toEqual([
    [...together, progress(4)],
    [...together, progress(8)],
  ]);
});

it('sends the first step at once, without waiting for more', () => {
  const { first, stats } = createOutbox();
  expect(first).toEqual([[stats]]);
});

it('sends every step of an engine whose steps take longer than 100 ms', async () => {
  const { step, stats, sent } = createOutbox(101);
  for (const done of [1, 2, 3]) await step(progress(done));
  expect(sent).toEqual([1, 2, 3].map((done) => [stats, progress(done)]));
});

it('keeps the latest progress of each row', async () => {
  const { step, stats, outbox, sent } = createOutbox();
  const rows = [of('a'), of('a', 1), of('b')];
  for (const done of [1, 2]) await step(...rows.map((row) => progress(done, row)));
  await outbox.flush();
  expect(sent).toEqual([[stats, stats, ...rows.map((row) => progress(2, row))]]);
});

const preview = { data: new Uint8Array(), facts: {} };

it.each<EngineEvent>([
  { type: 'progress', ...of('a'), done: 2, total: 20, preview },
  { type: 'delta', ...of('a'), offset: 0, text: 'a' },
  { type: 'row-releasing', ...of('a') },
  { type: 'checkpoint', ...of('a'), checkpoint: { done: 2, data: new Uint8Array() } },
  { type: 'output', ...of('a'), output: preview },
  { type: 'request-canceled', requestId: 'a' },
])('sends $type at once, after all pending events', async (event) => {
  const { step, stats, sent } = createOutbox();
  await step(progress(1));
  await step(event);
  expect(sent).toEqual([[stats, progress(1), stats, event]]);
});

it('returns a promise only if it sends', async () => {
  const { step, outbox, sent } = createOutbox();
  expect(step(progress(1))).toBeUndefined();
  expect(outbox.flush()).toBeInstanceOf(Promise);
  expect(outbox.flush()).toBeUndefined();
  expect(sent).toHaveLength(1);
});
