import type { Dispatchable, OpenWorker, WaitingRequest } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { type BatchPolicy, type Plan, planLeases } from './plan-leases.ts';

const policy: BatchPolicy = { maxSize: 8, timeoutMs: 10, isBatching: true, maxAttempts: 3, lookahead: 0 };
const nowMs = 1000;

/** 'a1', 'b2': shape and slots; a trailing '!' is a last attempt, a trailing '?' one that has just come. */
function waiting(...names: string[]): WaitingRequest[] {
  return names.map((name, index) => ({
    id: `${name}#${index}`,
    shapeKey: name.charAt(0),
    slots: Number(name.charAt(1)),
    attempts: name.endsWith('!') ? 2 : 0,
    waitingSinceMs: name.endsWith('?') ? nowMs - 4 : 0,
  }));
}

/** All its slots are promised to others, and its last rows are still on their way. */
function finishing(id: string, ...shapes: string[]): OpenWorker {
  return { ...idle(id), shapes };
}

function idle(id: string, capacity = 8): OpenWorker {
  return { id, isIdle: true, isAsleep: false, free: capacity, capacity, shapes: [] };
}

function asleep(id: string): OpenWorker {
  return { ...idle(id), isIdle: false, isAsleep: true };
}

/** It is about to have its model in memory, for rows of these shapes. */
function loading(id: string, free: number, ...shapes: string[]): OpenWorker {
  return { ...asleep(id), free, shapes };
}

function busy(id: string, free: number, ...shapes: string[]): OpenWorker {
  return { id, isIdle: false, isAsleep: false, free, capacity: 8, shapes };
}

function plan(
  workers: OpenWorker[],
  requests: WaitingRequest[],
  { reservedWorkerId, ...changes }: Partial<BatchPolicy> & Partial<Pick<Dispatchable, 'reservedWorkerId'>> = {},
): Plan {
  return planLeases({ nowMs, reservedWorkerId, workers, requests }, { ...policy, ...changes });
}

/** `w1: a1 a2 | w2! b1`: who gets what, exclusive with an exclamation mark. */
function inWords({ leases }: Plan): string {
  return leases
    .map(({ workerId, isExclusive, requestIds }) => {
      const names = requestIds.map((id) => id.slice(0, 2)).join(' ');
      return `${workerId}${isExclusive ? '!' : ':'} ${names}`;
    })
    .join(' | ');
}

describe('workers that sleep', () => {
  it('get what others have no room for', () => {
    expect(inWords(plan([busy('w1', 2), asleep('w2')], waiting('a1', 'a1')))).toBe('w1: a1 a1');
    expect(inWords(plan([idle('w1', 2), asleep('w2')], waiting('a2', 'b1')))).toBe('w1: a2 | w2: b1');
    expect(inWords(plan([busy('w1', 1), asleep('w2')], waiting('a1', 'a2')))).toBe('w1: a1 | w2: a2');
  });

  it('share what one of them can take, so that only one has to load', () => {
    expect(inWords(plan([asleep('w1'), asleep('w2')], waiting('a1', 'a1', 'a1')))).toBe('w1: a1 a1 a1');
  });

  it('get nothing while one that is awake has room, though they load for the same shape', () => {
    expect(inWords(plan([busy('w1', 1, 'b'), loading('w2', 6, 'a')], waiting('a1')))).toBe('w1: a1');
    expect(inWords(plan([busy('w1', 1, 'b'), loading('w2', 6, 'a')], waiting('a1', 'a1')))).toBe('w1: a1 | w2: a1');
  });

  it('are left alone where one loads anyway', () => {
    expect(inWords(plan([loading('w1', 2, 'b'), asleep('w2')], waiting('a1')))).toBe('w1: a1');
    expect(inWords(plan([asleep('w1'), asleep('w2')], waiting('a8', 'b1')))).toBe('w1: a8 | w2: b1');
    expect(inWords(plan([asleep('w1'), asleep('w2')], waiting('a1', 'b1')))).toBe('w1: a1 | w1: b1');
  });

  it('are waked by what must run alone, where nobody is idle', () => {
    expect(inWords(plan([busy('w1', 4), asleep('w2')], waiting('a1!')))).toBe('w2! a1');
    expect(inWords(plan([idle('w1'), asleep('w2')], waiting('a1!')))).toBe('w1! a1');
    const workers = [loading('w1', 7, 'b'), busy('w2', 2, 'b')];
    expect(plan(workers, waiting('a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w2' });
  });
});

describe('together', () => {
  it('goes at once while a worker is idle', () => {
    expect(inWords(plan([idle('w1')], waiting('a1?')))).toBe('w1: a1');
  });

  it('goes with what may share a step, in order, and other shapes to the same or another worker', () => {
    expect(inWords(plan([idle('w1')], waiting('a1', 'b1', 'a2', 'b1', 'a1')))).toBe('w1: a1 a2 a1 | w1: b1 b1');
    expect(inWords(plan([idle('w1', 4), idle('w2', 4)], waiting('a2', 'b2')))).toBe('w1: a2 | w2: b2');
  });

  it('goes even if it says that it takes nothing', () => {
    expect(inWords(plan([idle('w1')], waiting('a0', 'a0')))).toContain('w1: a0');
  });

  it('is divided among idle workers', () => {
    expect(inWords(plan([idle('w1'), idle('w2')], waiting('a1', 'a1', 'a1', 'a1', 'a1')))).toBe(
      'w1: a1 a1 a1 | w2: a1 a1',
    );
  });

  it('prefers a busy worker that runs its shape, else the one with most room', () => {
    expect(inWords(plan([busy('w1', 6, 'b'), busy('w2', 3, 'a')], waiting('a1')))).toBe('w2: a1');
    expect(inWords(plan([busy('w1', 3, 'b'), busy('w2', 6, 'c')], waiting('a1')))).toBe('w2: a1');
  });

  it('waits for company while all workers are busy, and not a moment longer', () => {
    expect(plan([busy('w1', 4)], waiting('a1?'))).toMatchObject({ leases: [], againInMs: 6 });
    expect(inWords(plan([busy('w1', 4)], waiting('a1')))).toBe('w1: a1');
    expect(inWords(plan([busy('w1', 1)], waiting('a1?')))).toBe('w1: a1');
  });

  it('takes what there is room for; the last one may overhang, and nobody overtakes', () => {
    expect(inWords(plan([idle('w1', 4)], waiting('a3', 'a3', 'a1')))).toBe('w1: a3 a3');
    expect(inWords(plan([idle('w1', 2)], waiting('a1', 'b1', 'a1', 'a1')))).toBe('w1: a1 | w1: b1');
  });

  it('looks further ahead where it may, for what fits', () => {
    expect(inWords(plan([idle('w1', 2), busy('w2', 1)], waiting('a1', 'b2', 'a1', 'a1'), { lookahead: 1 }))).toBe(
      'w1: a1 a1 | w2: b2',
    );
  });

  it('has nothing to do without requests or workers', () => {
    expect(plan([idle('w1')], [])).toEqual({ leases: [], reserveWorkerId: undefined, againInMs: undefined });
    expect(plan([], waiting('a1'))).toEqual({ leases: [], reserveWorkerId: undefined, againInMs: undefined });
  });
});

describe('alone', () => {
  it('a last attempt gets an idle worker of its own', () => {
    expect(inWords(plan([idle('w1'), idle('w2')], waiting('a1!', 'a1')))).toBe('w1! a1 | w2: a1');
  });

  it('reserves the worker with most room while none is idle, and holds nobody else up', () => {
    const workers = [busy('w1', 3, 'a'), busy('w2', 7, 'a'), busy('w3', 2, 'a')];
    const decided = plan(workers, waiting('a1!', ...Array<string>(5).fill('a1')));
    expect(decided.reserveWorkerId).toBe('w2');
    expect(inWords(decided)).toBe('w1: a1 a1 a1 | w3: a1 a1');
  });

  it('keeps to the worker that is reserved, until that is idle', () => {
    const workers = [busy('w1', 7), busy('w2', 3)];
    expect(plan(workers, waiting('a1!'), { reservedWorkerId: 'w2' }).reserveWorkerId).toBe('w2');
    const decided = plan([idle('w1'), idle('w2')], waiting('a1!'), { reservedWorkerId: 'w2' });
    expect(inWords(decided)).toBe('w2! a1');
    expect(decided.reserveWorkerId).toBeUndefined();
  });

  it('shares no worker with the last rows of others either', () => {
    const decided = plan([finishing('w1', 'a'), idle('w2')], waiting('a1!'));
    expect(inWords(decided)).toBe('w2! a1');
    expect(plan([finishing('w1', 'a')], waiting('a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w1' });
  });

  it('with one worker the others wait for it too', () => {
    expect(plan([busy('w1', 7)], waiting('a1', 'a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w1' });
  });

  it('without batching every request has a worker for itself, and none is reserved', () => {
    const alone = { isBatching: false };
    expect(inWords(plan([idle('w1'), idle('w2')], waiting('a1', 'a1', 'a1'), alone))).toBe('w1! a1 | w2! a1');
    expect(plan([busy('w1', 7)], waiting('a1'), alone)).toMatchObject({ leases: [], reserveWorkerId: undefined });
  });
});
