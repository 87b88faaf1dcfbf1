import { expect, it } from 'vitest';
import type { EngineEvent } from '../executor-event.ts';
import { EventOutbox } from './event-outbox.ts';

function createOutbox() {
  const sent: (readonly EngineEvent[])[] = [];
  let nowMs = 0;
  const send = (events: readonly EngineEvent[]): Promise<void> => {
    sent.push(events);
    return Promise.resolve();
  };
  const outbox = new EventOutbox({ send, now: () => nowMs });
  return {
    sent,
    outbox,
    /** One step of these rows, so long after the one before. */
    step: (afterMs: number, ...events: EngineEvent[]): void | Promise<void> => {
      nowMs += afterMs;
      return outbox.push([stats, ...events]);
    },
  };
}

const stats: EngineEvent = {
  type: 'stats',
  shapeKey: '8x8',
  rows: 1,
  modelRows: 1,
  tableSlots: 1,
  waitingRequests: 0,
  stepMs: 10,
};
const of = (requestId: string, index = 0) => ({ requestId, index });
const progress = (done: number, row = of('a')): EngineEvent => ({ type: 'progress', ...row, done, total: 20 });

it('says ten times a second how far rows are, and how each step went', async () => {
  const { step, sent } = createOutbox();
  await step(0, progress(1));
  for (let done = 2; done <= 12; done++) await step(10, progress(done));
  expect(sent).toEqual([
    [stats, progress(1)],
    [...Array.from({ length: 10 }, () => stats), progress(11)],
  ]);
});

it('says every step of an engine that takes longer for one', async () => {
  const { step, sent } = createOutbox();
  for (const done of [1, 2, 3]) await step(100, progress(done));
  expect(sent).toEqual([1, 2, 3].map((done) => [stats, progress(done)]));
});

it('knows the rows apart', async () => {
  const { step, outbox, sent } = createOutbox();
  await step(0);
  const rows = [of('a'), of('a', 1), of('b')];
  for (const done of [1, 2]) await step(1, ...rows.map((row) => progress(done, row)));
  await outbox.flush();
  expect(sent.at(-1)).toEqual([stats, stats, ...rows.map((row) => progress(2, row))]);
});

const preview = { data: new Uint8Array(), facts: {} };

it.each<EngineEvent>([
  { type: 'progress', ...of('a'), done: 3, total: 20, preview },
  { type: 'delta', ...of('a'), offset: 0, text: 'a' },
  { type: 'row-releasing', ...of('a') },
  { type: 'checkpoint', ...of('a'), checkpoint: { done: 3, data: new Uint8Array() } },
  { type: 'output', ...of('a'), output: preview },
  { type: 'request-canceled', requestId: 'a' },
])('lets $type out at once, with all that was said before', async (event) => {
  const { step, sent } = createOutbox();
  await step(0, progress(1));
  await step(1, progress(2));
  await step(1, event);
  expect(sent.slice(1)).toEqual([[stats, progress(2), stats, event]]);
});

it('gives to wait for what it sends, and holds up nobody for the rest', async () => {
  const { step, outbox, sent } = createOutbox();
  expect(step(0, progress(1))).toBeInstanceOf(Promise);
  expect(step(1, progress(2))).toBeUndefined();
  await outbox.flush();
  expect(outbox.flush()).toBeUndefined();
  expect(sent).toHaveLength(2);
});
