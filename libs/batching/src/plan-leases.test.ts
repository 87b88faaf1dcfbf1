import type { Dispatchable, OpenWorker, QueuedRequest } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { type BatchPolicy, type Plan, planLeases } from './plan-leases.ts';

const policy: BatchPolicy = { maxSize: 8, timeoutMs: 10 };
const nowMs = 1000;

/**
 * Makes requests from names like 'a1' or 'b2!': shape and slots; `!` marks a last attempt, `?` a request that just
 * arrived.
 */
function waiting(...names: string[]): QueuedRequest[] {
  return names.map((name, index) => ({
    id: `${name}#${index}`,
    shapeKey: name.charAt(0),
    slots: Number(name.charAt(1)),
    attemptsLeft: name.endsWith('!') ? 1 : 3,
    waitingSinceMs: name.endsWith('?') ? nowMs - 4 : 0,
  }));
}

/** A worker whose slots are all free again while its last rows still run. */
function finishing(id: string, ...shapes: string[]): OpenWorker {
  return { ...idle(id), shapes };
}

function idle(id: string, capacity = 8): OpenWorker {
  return { id, isIdle: true, isAsleep: false, free: capacity, capacity, shapes: [] };
}

function asleep(id: string): OpenWorker {
  return { ...idle(id), isIdle: false, isAsleep: true };
}

/** A sleeping worker that is about to load its model, for rows of these shapes. */
function loading(id: string, free: number, ...shapes: string[]): OpenWorker {
  return { ...asleep(id), free, shapes };
}

function busy(id: string, free: number, ...shapes: string[]): OpenWorker {
  return { id, isIdle: false, isAsleep: false, free, capacity: 8, shapes };
}

function plan(
  workers: OpenWorker[],
  requests: QueuedRequest[],
  { reservedWorkerId, ...changes }: Partial<BatchPolicy> & Partial<Pick<Dispatchable, 'reservedWorkerId'>> = {},
): Plan {
  return planLeases({ nowMs, reservedWorkerId, workers, requests }, { ...policy, ...changes });
}

/** Formats a plan as `w1: a1 a2 | w2! b1`; `!` marks an exclusive lease. */
function formatPlan({ leases }: Plan): string {
  return leases
    .map(({ workerId, isExclusive, requestIds }) => {
      const names = requestIds.map((id) => id.slice(0, 2)).join(' ');
      return `${workerId}${isExclusive ? '!' : ':'} ${names}`;
    })
    .join(' | ');
}

describe('sleeping workers', () => {
  it('get the requests that do not fit on awake workers', () => {
    expect(formatPlan(plan([busy('w1', 2), asleep('w2')], waiting('a1', 'a1')))).toBe('w1: a1 a1');
    expect(formatPlan(plan([idle('w1', 2), asleep('w2')], waiting('a2', 'b1')))).toBe('w1: a2 | w2: b1');
    expect(formatPlan(plan([busy('w1', 1), asleep('w2')], waiting('a1', 'a2')))).toBe('w1: a1 | w2: a2');
  });

  it('get all requests on one of them if they fit, so that only one loads', () => {
    expect(formatPlan(plan([asleep('w1'), asleep('w2')], waiting('a1', 'a1', 'a1')))).toBe('w1: a1 a1 a1');
  });

  it('get nothing while an awake worker has free slots, even if they load for the same shape', () => {
    expect(formatPlan(plan([busy('w1', 1, 'b'), loading('w2', 6, 'a')], waiting('a1')))).toBe('w1: a1');
    expect(formatPlan(plan([busy('w1', 1, 'b'), loading('w2', 6, 'a')], waiting('a1', 'a1')))).toBe('w1: a1 | w2: a1');
  });

  it('stay asleep if another worker is loading anyway', () => {
    expect(formatPlan(plan([loading('w1', 2, 'b'), asleep('w2')], waiting('a1')))).toBe('w1: a1');
    expect(formatPlan(plan([asleep('w1'), asleep('w2')], waiting('a8', 'b1')))).toBe('w1: a8 | w2: b1');
    expect(formatPlan(plan([asleep('w1'), asleep('w2')], waiting('a1', 'b1')))).toBe('w1: a1 | w1: b1');
  });

  it('are woken for an exclusive request if no worker is idle', () => {
    expect(formatPlan(plan([busy('w1', 4), asleep('w2')], waiting('a1!')))).toBe('w2! a1');
    expect(formatPlan(plan([idle('w1'), asleep('w2')], waiting('a1!')))).toBe('w1! a1');
    const workers = [loading('w1', 7, 'b'), busy('w2', 2, 'b')];
    expect(plan(workers, waiting('a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w2' });
  });
});

describe('shared leases', () => {
  it('are granted at once while a worker is idle', () => {
    expect(formatPlan(plan([idle('w1')], waiting('a1?')))).toBe('w1: a1');
  });

  it('group requests of one shape, in order; other shapes go to the same or another worker', () => {
    expect(formatPlan(plan([idle('w1')], waiting('a1', 'b1', 'a2', 'b1', 'a1')))).toBe('w1: a1 a2 a1 | w1: b1 b1');
    expect(formatPlan(plan([idle('w1', 4), idle('w2', 4)], waiting('a2', 'b2')))).toBe('w1: a2 | w2: b2');
  });

  it('are granted for requests of 0 slots', () => {
    expect(formatPlan(plan([idle('w1')], waiting('a0', 'a0')))).toContain('w1: a0');
  });

  it('have at most as many slots as BATCH_MAX_SIZE', () => {
    expect(formatPlan(plan([idle('w1', 8)], waiting('a1', 'a1', 'a1'), { maxSize: 2 }))).toBe('w1: a1 a1 | w1: a1');
    // A full batch waits for no other request.
    expect(formatPlan(plan([busy('w1', 4)], waiting('a1?', 'a1?'), { maxSize: 2 }))).toBe('w1: a1 a1');
  });

  it('are not granted with BATCH_MAX_SIZE=1: each request runs alone', () => {
    expect(formatPlan(plan([idle('w1', 8), busy('w2', 4)], waiting('a1', 'a1'), { maxSize: 1 }))).toBe('w1! a1');
  });

  it('are divided among idle workers', () => {
    expect(formatPlan(plan([idle('w1'), idle('w2')], waiting('a1', 'a1', 'a1', 'a1', 'a1')))).toBe(
      'w1: a1 a1 a1 | w2: a1 a1',
    );
  });

  it('prefer a busy worker that runs the same shape, else the one with most free slots', () => {
    expect(formatPlan(plan([busy('w1', 6, 'b'), busy('w2', 3, 'a')], waiting('a1')))).toBe('w2: a1');
    expect(formatPlan(plan([busy('w1', 3, 'b'), busy('w2', 6, 'c')], waiting('a1')))).toBe('w2: a1');
  });

  it('wait up to the batch timeout while all workers are busy and the batch is not full', () => {
    expect(plan([busy('w1', 4)], waiting('a1?'))).toMatchObject({ leases: [], retryInMs: 6 });
    expect(formatPlan(plan([busy('w1', 4)], waiting('a1')))).toBe('w1: a1');
    expect(formatPlan(plan([busy('w1', 1)], waiting('a1?')))).toBe('w1: a1');
  });

  it('fill the free slots in order; the last request may exceed them', () => {
    expect(formatPlan(plan([idle('w1', 4)], waiting('a3', 'a3', 'a1')))).toBe('w1: a3 a3');
    expect(formatPlan(plan([idle('w1', 2)], waiting('a1', 'b1', 'a1', 'a1')))).toBe('w1: a1 | w1: b1');
  });

  it('are not planned without requests or workers', () => {
    expect(plan([idle('w1')], [])).toEqual({ leases: [], reserveWorkerId: undefined, retryInMs: undefined });
    expect(plan([], waiting('a1'))).toEqual({ leases: [], reserveWorkerId: undefined, retryInMs: undefined });
  });
});

describe('exclusive leases', () => {
  it('give a last attempt an idle worker of its own', () => {
    expect(formatPlan(plan([idle('w1'), idle('w2')], waiting('a1!', 'a1')))).toBe('w1! a1 | w2: a1');
  });

  it('reserve the worker with most free slots while none is idle, and delay no other request', () => {
    const workers = [busy('w1', 3, 'a'), busy('w2', 7, 'a'), busy('w3', 2, 'a')];
    const decided = plan(workers, waiting('a1!', ...Array<string>(5).fill('a1')));
    expect(decided.reserveWorkerId).toBe('w2');
    expect(formatPlan(decided)).toBe('w1: a1 a1 a1 | w3: a1 a1');
  });

  it('keep the reserved worker until it is idle', () => {
    const workers = [busy('w1', 7), busy('w2', 3)];
    expect(plan(workers, waiting('a1!'), { reservedWorkerId: 'w2' }).reserveWorkerId).toBe('w2');
    const decided = plan([idle('w1'), idle('w2')], waiting('a1!'), { reservedWorkerId: 'w2' });
    expect(formatPlan(decided)).toBe('w2! a1');
    expect(decided.reserveWorkerId).toBeUndefined();
  });

  it('are not granted on a worker that still runs the last rows of others', () => {
    const decided = plan([finishing('w1', 'a'), idle('w2')], waiting('a1!'));
    expect(formatPlan(decided)).toBe('w2! a1');
    expect(plan([finishing('w1', 'a')], waiting('a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w1' });
  });

  it('delay all other requests if there is only one worker', () => {
    expect(plan([busy('w1', 7)], waiting('a1', 'a1!'))).toMatchObject({ leases: [], reserveWorkerId: 'w1' });
  });
});
