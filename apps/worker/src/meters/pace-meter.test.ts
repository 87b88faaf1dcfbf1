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
  const encoder = { encode: () => Promise.resolve({ data: new Uint8Array(), contentType: 'text/plain' }) };
  const options = { writes, encoder, onRefused: () => {}, onError: () => {} };
  return new ActiveRequest(leased, options as unknown as ActiveRequestOptions);
}

/** A meter, and a request that observes the events after the meter, as in a worker. */
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

/** One row of ten steps, each of cost 1. */
const image = { cost: 10 };

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

it('returns undefined before the first step', () => {
  expect(createMeter(image).read()).toBeUndefined();
});

it('measures wall-clock time between steps while busy, so that work between steps counts', () => {
  const meter = createMeter(image);
  for (let number = 1; number <= 5; number++) meter.observe(step(number, { stepMs: 20 }), 1000 + number * 20);
  expect(meter.read()).toEqual({
    costMs: { fast: 20, slow: 20 },
    stepMs: { fast: 20, slow: 20 },
    remainingCost: 5,
  });
});

it('does not count idle time as a step', () => {
  const meter = createMeter(image);
  meter.observe(step(1), 1000);
  meter.observe(done, 1010);
  expect(meter.read()!.remainingCost).toBe(0);
  meter.active.set('a', request(image));
  meter.observe(step(1), 60_000);
  meter.observe([{ type: 'request-canceled', requestId: 'a' }], 60_010);
  meter.active.set('a', request(image));
  meter.observe(step(1), 120_000);
  expect(meter.read()!.stepMs).toEqual({ fast: 5, slow: 5 });
});

it('counts the time to encode an output while other requests run', () => {
  const meter = createMeter(image);
  meter.active.set('b', request(image));
  meter.observe(step(1), 1000);
  meter.observe(done, 1010);
  meter.observe([stats(5), { type: 'progress', requestId: 'b', index: 0, done: 1, total: 10 }], 1100);
  expect(meter.read()!.stepMs).toEqual({ fast: 5, slow: 100 });
});

it('returns the 10th to 90th percentile of the last 64 steps', () => {
  const meter = createMeter({ cost: 1 });
  let nowMs = 0;
  for (let number = 1; number <= 100; number++)
    meter.observe(step(number, { stepMs: 500, total: 1000 }), (nowMs += 500));
  for (let number = 0; number < 64; number++)
    meter.observe(step(101 + number, { total: 1000 }), (nowMs += 10 + number));
  expect(meter.read()!.stepMs).toEqual({ fast: 16, slow: 67 });
});

it('divides the time of steps reported together by their number', () => {
  const meter = createMeter(image);
  // 10 ms each, then 12 ms each with the work between them.
  meter.observe([stats(10), stats(10), stats(10), ...step(4, { stepMs: 10 })], 1040);
  meter.observe([stats(10), ...step(6, { stepMs: 10 })], 1064);
  expect(meter.read()).toMatchObject({
    stepMs: { fast: 10, slow: 12 },
    costMs: { fast: 10, slow: 12 },
    remainingCost: 4,
  });
});

/** A text of 20 tokens with a prompt of 20. */
const text = { kind: 'text', cost: 40 };

it('measures texts by the tokens in their text events', () => {
  const meter = createMeter(text);
  // The prompt is read; its time counts toward the first token.
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
  // A token is 1/20 of the request's cost.
  expect([stepMs, costMs]).toEqual([
    { fast: 10, slow: 10 },
    { fast: 5, slow: 5 },
  ]);
  expect(remainingCost).toBe(10);
  expect(meter.read()!.share).toBeUndefined();
  // The text ends early.
  meter.observe(done, 1200);
  expect(meter.read()).toMatchObject({ remainingCost: 0, share: { fast: 0.75, slow: 0.75 } });
});

it('measures texts that gain several tokens per step', () => {
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

it('continues at the checkpoint of an earlier worker', () => {
  const meter = createMeter(text);
  meter.active.get('a')!.resume({
    indexes: [0],
    checkpoints: new Map([[0, { done: 10, data: new Uint8Array(), origin: '' }]]),
    texts: new Map(),
  });
  meter.observe([stats(10), { type: 'progress', requestId: 'a', index: 0, done: 11, total: 20 }], 1000);
  expect(meter.read()).toEqual({
    costMs: { fast: 5, slow: 5 },
    stepMs: { fast: 10, slow: 10 },
    remainingCost: 18,
  });
});

const textEvents = (requestId: string, done: number): ExecutorEvent[] => [
  { type: 'delta', requestId, index: 0, offset: done - 1, text: 'a' },
  { type: 'progress', requestId, index: 0, done, total: 20 },
];

it('measures an executor without steps by a window in which all rows advance', () => {
  const meter = createMeter(text);
  meter.active.set('b', request(text));
  meter.submitted(1000);
  // Two texts alternate: 40 ms between two tokens of one text.
  for (let token = 1; token <= 8; token++) {
    meter.observe(textEvents('a', token), 1000 + 40 * token - 20);
    meter.observe(textEvents('b', token), 1000 + 40 * token);
  }
  const { stepMs, costMs } = meter.read()!;
  expect(stepMs).toEqual({ fast: 40, slow: 40 });
  // A token costs two units, and two texts share the time.
  expect(costMs).toEqual({ fast: 10, slow: 10 });
});

it('measures a short request without steps, including its wait for the start and excluding the time after its end', () => {
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
