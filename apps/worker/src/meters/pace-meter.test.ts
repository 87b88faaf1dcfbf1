import type { RequestEnvelope } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import { testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { ActiveRequest, type ActiveRequestOptions } from '../request/active-request.ts';
import { PaceMeter } from './pace-meter.ts';

function request(envelope: Partial<RequestEnvelope>): ActiveRequest {
  const leased = {
    envelope: testEnvelope(envelope),
    token: 'a',
    slots: 1,
    attempt: 1,
    isResumed: false,
    deadlineMs: 1,
    remainingMs: 1,
  };
  const writes = { push: () => Promise.resolve('written') };
  const encoder = { encodeOutput: () => Promise.resolve({ data: new Uint8Array(), contentType: 'text/plain' }) };
  const options = { writes, encoder, chunkBytes: 100, onRefused: () => {}, onError: () => {} };
  return new ActiveRequest(leased, options as unknown as ActiveRequestOptions);
}

/** A meter, and a request that takes note of what the meter has seen, as in a worker. */
function createMeter(envelope: Partial<RequestEnvelope>) {
  const active = new Map([['a', request(envelope)]]);
  const meter = new PaceMeter();
  return {
    active,
    observe(events: readonly ExecutorEvent[], nowMs: number): void {
      meter.observe(events, active, nowMs);
      for (const event of events)
        if (event.type !== 'stats' && event.type !== 'engine-lost') active.get(event.requestId)?.observe(event);
    },
    submitted: (nowMs: number) => meter.submitted(nowMs),
    read: () => meter.read(active),
  };
}

/** One row of ten steps that costs a unit for each. */
const picture = { cost: 10 };

function stats(stepMs: number): ExecutorEvent {
  return { type: 'stats', shapeKey: '8x8', rows: 1, modelRows: 1, tableSlots: 1, waitingRequests: 0, stepMs };
}

function step(number: number, { stepMs = 5, total = 10 } = {}): ExecutorEvent[] {
  return [stats(stepMs), { type: 'progress', requestId: 'a', index: 0, done: number, total }];
}

const done: ExecutorEvent[] = [
  { type: 'output', requestId: 'a', index: 0, output: { data: new Uint8Array(), facts: {} } },
  { type: 'request-done', requestId: 'a' },
];

it('knows nothing before the first step', () => {
  expect(createMeter(picture).read()).toBeUndefined();
});

it('takes the time from step to step while it is busy, so that what comes between counts', () => {
  const meter = createMeter(picture);
  for (let number = 1; number <= 5; number++) meter.observe(step(number, { stepMs: 20 }), 1000 + number * 20);
  expect(meter.read()).toEqual({
    costMs: { fast: 20, slow: 20 },
    stepMs: { fast: 20, slow: 20 },
    remainingCost: 5,
  });
});

it('does not count the time without work as a step', () => {
  const meter = createMeter(picture);
  meter.observe(step(1), 1000);
  meter.observe(done, 1010);
  expect(meter.read()!.remainingCost).toBe(0);
  meter.active.set('a', request(picture));
  meter.observe(step(1), 60_000);
  meter.observe([{ type: 'request-canceled', requestId: 'a' }], 60_010);
  meter.active.set('a', request(picture));
  meter.observe(step(1), 120_000);
  expect(meter.read()!.stepMs).toEqual({ fast: 5, slow: 5 });
});

it('counts the time of an output while others have something to do', () => {
  const meter = createMeter(picture);
  meter.active.set('b', request(picture));
  meter.observe(step(1), 1000);
  meter.observe(done, 1010);
  meter.observe([stats(5), { type: 'progress', requestId: 'b', index: 0, done: 1, total: 10 }], 1100);
  expect(meter.read()!.stepMs).toEqual({ fast: 5, slow: 100 });
});

it('gives the range from the fast to the slow, of the last steps only', () => {
  const meter = createMeter({ cost: 1 });
  let nowMs = 0;
  for (let number = 1; number <= 100; number++)
    meter.observe(step(number, { stepMs: 500, total: 1000 }), (nowMs += 500));
  for (let number = 0; number < 64; number++)
    meter.observe(step(101 + number, { total: 1000 }), (nowMs += 10 + number));
  expect(meter.read()!.stepMs).toEqual({ fast: 16, slow: 67 });
});

it('takes several steps that are told of together for as many', () => {
  const meter = createMeter(picture);
  // 10 ms each, and then 12, with what comes between them.
  meter.observe([stats(10), stats(10), stats(10), ...step(4, { stepMs: 10 })], 1040);
  meter.observe([stats(10), ...step(6, { stepMs: 10 })], 1064);
  expect(meter.read()).toMatchObject({
    stepMs: { fast: 10, slow: 12 },
    costMs: { fast: 10, slow: 12 },
    remainingCost: 4,
  });
});

/** A text of 20 tokens after a prompt of 20. */
const text = { kind: 'text', cost: 40 };

it('measures texts by their tokens, which they say with what they write', () => {
  const meter = createMeter(text);
  // The prompt is read: what that takes is the first token's.
  meter.observe([stats(30)], 1030);
  meter.observe(
    [
      stats(10),
      { type: 'progress', requestId: 'a', index: 0, done: 1, total: 20 },
      { type: 'delta', requestId: 'a', index: 0, offset: 0, text: 'a', done: 1, facts: { ids: '7,' } },
    ],
    1040,
  );
  expect(meter.read()).toMatchObject({ stepMs: { slow: 40 }, costMs: { slow: 20 } });
  for (let token = 2; token <= 15; token++)
    meter.observe(
      [stats(10), { type: 'delta', requestId: 'a', index: 0, offset: token - 1, text: 'a', done: token }],
      1030 + token * 10,
    );
  const { stepMs, costMs, remainingCost } = meter.read()!;
  // A token is a twentieth of all that it costs.
  expect([stepMs, costMs]).toEqual([
    { fast: 10, slow: 10 },
    { fast: 5, slow: 5 },
  ]);
  expect(remainingCost).toBe(10);
  expect(meter.read()!.share).toBeUndefined();
  // It has said what it has to say, before it had to.
  meter.observe(done, 1200);
  expect(meter.read()).toMatchObject({ remainingCost: 0, share: { fast: 0.75, slow: 0.75 } });
});

it('measures texts that grow by several tokens in a step', () => {
  const meter = createMeter(text);
  for (let call = 1; call <= 3; call++)
    meter.observe(
      [
        stats(10),
        { type: 'progress', requestId: 'a', index: 0, done: call * 4, total: 20 },
        { type: 'snapshot', requestId: 'a', index: 0, offset: 0, text: 'a', done: call * 4 },
      ],
      1000 + call * 10,
    );
  expect(meter.read()).toEqual({
    costMs: { fast: 1.25, slow: 1.25 },
    stepMs: { fast: 2.5, slow: 2.5 },
    remainingCost: 16,
  });
});

it('goes on where an earlier worker stood', () => {
  const meter = createMeter(text);
  meter.active.get('a')!.resume({
    indexes: [0],
    checkpoints: new Map([[0, { done: 10, data: new Uint8Array(), origin: '' }]]),
    said: new Map(),
  });
  meter.observe([stats(10), { type: 'progress', requestId: 'a', index: 0, done: 11, total: 20 }], 1000);
  expect(meter.read()).toEqual({
    costMs: { fast: 5, slow: 5 },
    stepMs: { fast: 10, slow: 10 },
    remainingCost: 18,
  });
});

const said = (requestId: string, done: number): ExecutorEvent[] => [
  { type: 'delta', requestId, index: 0, offset: done - 1, text: 'a' },
  { type: 'progress', requestId, index: 0, done, total: 20 },
];

it('measures what has no steps by the time in which all have come further', () => {
  const meter = createMeter(text);
  meter.active.set('b', request(text));
  meter.submitted(1000);
  // In turns, and each by itself: 40 ms from a token of a text to its next.
  for (let token = 1; token <= 8; token++) {
    meter.observe(said('a', token), 1000 + 40 * token - 20);
    meter.observe(said('b', token), 1000 + 40 * token);
  }
  const { stepMs, costMs } = meter.read()!;
  expect(stepMs).toEqual({ fast: 40, slow: 40 });
  // Two units of cost are a token, and two texts share the time.
  expect(costMs).toEqual({ fast: 10, slow: 10 });
});

it('measures what has no steps and is soon over, with the wait for its beginning and without the time after', () => {
  const meter = createMeter(text);
  meter.submitted(1000);
  meter.observe([{ type: 'progress', requestId: 'a', index: 0, done: 10, total: 20 }], 1100);
  expect(meter.read()).toBeUndefined();
  meter.observe(done, 1100);
  expect(meter.read()).toMatchObject({ stepMs: { slow: 10 }, costMs: { slow: 5 }, share: { slow: 0.5 } });
  meter.active.set('a', request(text));
  meter.submitted(60_000);
  meter.observe([{ type: 'progress', requestId: 'a', index: 0, done: 10, total: 20 }], 60_100);
  meter.observe(done, 60_100);
  expect(meter.read()).toMatchObject({ stepMs: { slow: 10 } });
});
