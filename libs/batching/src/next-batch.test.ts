import { describe, expect, it } from 'vitest';
import { type BatchPolicy, type HeldRequest, nextBatch, takeCount } from './next-batch.ts';

const policy: BatchPolicy = { maxSize: 8, timeoutMs: 10, isBatching: true };
const idle = { idle: 1, busy: 0, freeRows: 8 };
const busy = { idle: 0, busy: 1, freeRows: 4 };

function hold(...names: string[]): (HeldRequest & { name: string })[] {
  // 'a1', 'b2': shape and slots; a trailing '!' is a last attempt.
  return names.map((name) => ({
    name,
    shapeKey: name.charAt(0),
    slots: Number(name.charAt(1)),
    takenAtMs: 100,
    isAlone: name.endsWith('!'),
  }));
}

function names(decision: ReturnType<typeof nextBatch<HeldRequest & { name: string }>>): string {
  return decision.kind === 'lease' ? decision.batch.map(({ name }) => name).join(' ') : decision.kind;
}

describe('nextBatch', () => {
  it('leases at once while a worker is idle', () => {
    expect(nextBatch(hold('a1'), idle, policy, 100)).toMatchObject({ kind: 'lease', mode: 'shared', maxRows: 1 });
  });

  it('groups what may share a step with the first, in order', () => {
    expect(names(nextBatch(hold('a1', 'b1', 'a2', 'b1', 'a1'), idle, policy, 100))).toBe('a1 a2 a1');
  });

  it('waits for company while all workers are busy, and not a moment longer', () => {
    expect(nextBatch(hold('a1'), busy, policy, 109)).toEqual({ kind: 'wait', untilMs: 110 });
    expect(names(nextBatch(hold('a1'), busy, policy, 110))).toBe('a1');
  });

  it('does not wait when the free rows are filled already', () => {
    expect(names(nextBatch(hold('a1', 'a1', 'a2'), busy, policy, 100))).toBe('a1 a1 a2');
    expect(names(nextBatch(hold('a1'), { ...busy, freeRows: 1 }, policy, 100))).toBe('a1');
  });

  it('divides the rows among the idle workers', () => {
    const decision = nextBatch(hold('a1', 'a1', 'a1', 'a1', 'a1'), { idle: 2, busy: 0, freeRows: 16 }, policy, 100);
    expect(decision).toMatchObject({ kind: 'lease', maxRows: 3 });
    expect(names(decision)).toBe('a1 a1 a1');
  });

  it('gives a last attempt a worker of its own, and lets nobody overtake it', () => {
    expect(nextBatch(hold('a1!', 'a1'), idle, policy, 100)).toMatchObject({
      mode: 'exclusive',
      batch: [{ name: 'a1!' }],
    });
    expect(nextBatch(hold('a1!', 'a1'), { ...busy, freeRows: 0 }, policy, 999)).toMatchObject({ mode: 'exclusive' });
    expect(names(nextBatch(hold('a1', 'a1!', 'a1'), idle, policy, 100))).toBe('a1 a1');
  });

  it('runs one request at a time without batching', () => {
    const alone = { ...policy, isBatching: false };
    expect(nextBatch(hold('a1', 'a1'), idle, alone, 100)).toMatchObject({ mode: 'exclusive', batch: [{ name: 'a1' }] });
    expect(nextBatch(hold('a1'), busy, alone, 999)).toEqual({ kind: 'idle' });
  });

  it('has nothing to do without requests or rows', () => {
    expect(nextBatch([], idle, policy, 100)).toEqual({ kind: 'idle' });
    expect(nextBatch(hold('a1'), { idle: 0, busy: 2, freeRows: 0 }, policy, 999)).toEqual({ kind: 'idle' });
  });
});

describe('takeCount', () => {
  const options = { lookahead: 0, isBatching: true };
  const many = { takeable: 100, nextRows: Array.from({ length: 30 }, () => 1) };

  it('takes what the workers have room for, less what is held', () => {
    expect(takeCount([], idle, many, options)).toBe(8);
    expect(takeCount(hold('a1', 'b2'), idle, many, options)).toBe(5);
    expect(takeCount(hold('a9'), idle, many, options)).toBe(0);
  });

  it('counts rows, not requests: what finds no room stays where it can be overtaken', () => {
    expect(takeCount([], idle, { takeable: 100, nextRows: [3, 4, 10, 1, 1, 1, 1, 1] }, options)).toBe(3);
    expect(takeCount([], idle, { takeable: 100, nextRows: [10, 10, 10, 10] }, options)).toBe(1);
  });

  it('takes a bounded look-ahead on top', () => {
    const busy = { idle: 0, busy: 1, freeRows: 0 };
    expect(takeCount([], busy, { takeable: 100, nextRows: [] }, { ...options, lookahead: 3 })).toBe(3);
    const full = { ...busy, freeRows: -2 };
    expect(takeCount(hold('a1', 'a1', 'a1'), full, { takeable: 100, nextRows: [] }, { ...options, lookahead: 3 })).toBe(
      0,
    );
  });

  it('leaves everything in the queue while there is no worker', () => {
    expect(takeCount([], { idle: 0, busy: 0, freeRows: 0 }, many, { ...options, lookahead: 8 })).toBe(0);
  });

  it('never asks for more than there is', () => {
    expect(takeCount([], idle, { takeable: 3, nextRows: [1, 1, 1] }, { ...options, lookahead: 9 })).toBe(3);
  });

  it('takes one per idle worker without batching', () => {
    expect(takeCount(hold('a1'), { idle: 3, busy: 1, freeRows: 30 }, many, { ...options, isBatching: false })).toBe(2);
  });
});
