import type { ShardLoad } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { planMoves } from './plan-moves.ts';

const policy = { heldUpMs: 500 };

/** Makes the load of a shard with idle workers `<shard>.0`, `<shard>.1`, …, and further busy ones. */
function load(
  shard: string,
  { idle = 0, ...rest }: Partial<Omit<ShardLoad, 'idle'>> & { idle?: number } = {},
): ShardLoad {
  const workers = rest.workers ?? idle;
  return {
    shard,
    isOpen: true,
    waiting: 0,
    running: workers - idle,
    oldestMs: rest.waiting ? 1000 : 0,
    workers,
    idle: Array.from({ length: idle }, (_worker, at) => `${shard}.${at}`),
    busy: workers > idle ? `${shard}.busy` : undefined,
    ...rest,
  };
}

/** Formats the planned moves as `worker>shard`; `!` marks a busy worker, which finishes its requests first. */
function moves(...loads: ShardLoad[]): string[] {
  return planMoves(loads, policy).map(({ workerId, to, isPatient }) => `${workerId}>${to}${isPatient ? '!' : ''}`);
}

/** Returns the number of workers per shard after planning, with all workers idle. */
function rebalance(...counts: number[]): number[] {
  const planned = planMoves(
    counts.map((idle, at) => load(String(at), { idle })),
    policy,
  );
  return counts.map((count, at) => {
    const [came, went] = (['to', 'from'] as const).map((end) => planned.filter((move) => move[end] === String(at)));
    return count + came!.length - went!.length;
  });
}

describe('idle workers', () => {
  it.each([
    [
      [4, 0],
      [2, 2],
    ],
    [
      [5, 0, 0],
      [2, 2, 1],
    ],
    [
      [0, 9, 1, 2],
      [3, 3, 3, 3],
    ],
  ])('%j are spread evenly: %j', (before, after) => {
    expect(rebalance(...before).toSorted((left, right) => right - left)).toEqual(after);
  });

  it.each([[[1, 0]], [[3, 2]], [[2, 1, 1]], [[0, 0]]])('%j stay where they are', (counts) => {
    expect(rebalance(...counts)).toEqual(counts);
  });

  it('all leave a closed shard', () => {
    expect(moves(load('a', { idle: 2 }), load('b', { idle: 2, isOpen: false }))).toEqual(['b.0>a', 'b.1>a']);
  });

  it('move to a shard with fewer workers even if other workers of their shard are busy', () => {
    expect(moves(load('a', { idle: 1, workers: 3 }), load('b', { workers: 1 }))).toEqual(['a.0>b']);
  });
});

describe('a shard with queued requests', () => {
  it('gets idle workers of other shards, as many as it has requests, but not the last of a shard', () => {
    expect(moves(load('a', { idle: 3 }), load('b', { workers: 3, waiting: 1 }))).toEqual(['a.0>b']);
    expect(moves(load('a', { idle: 3 }), load('b', { workers: 3, waiting: 9 }))).toEqual(['a.0>b', 'a.1>b']);
  });

  it('gets the last worker of a shard at once if it has no worker', () => {
    expect(moves(load('a', { idle: 1 }), load('b', { waiting: 1, oldestMs: 0 }))).toEqual(['a.0>b']);
    expect(moves(load('a', { idle: 1 }), load('b', { waiting: 1, isOpen: false }))).toEqual(['a.0>b']);
  });

  it('gets no worker for requests that just arrived, or while it has idle workers', () => {
    expect(moves(load('a', { idle: 2 }), load('b', { workers: 2, waiting: 9, oldestMs: 499 }))).toEqual([]);
    expect(moves(load('a', { idle: 2 }), load('b', { idle: 1, workers: 2, waiting: 9 }))).toEqual([]);
  });

  it('gets a busy worker of the least loaded shard if it has no worker and none is idle', () => {
    expect(moves(load('a', { workers: 1, waiting: 5 }), load('b', { waiting: 1, oldestMs: 0 }))).toEqual(['a.busy>b!']);
    const [a, b] = [load('a', { workers: 1, waiting: 9 }), load('b', { workers: 1, waiting: 1 })];
    expect(moves(a, b, load('c', { waiting: 5 }))).toEqual(['b.busy>c!']);
  });

  it('gets a busy worker if its load per worker is more than twice that of another shard', () => {
    const waiting = (a: number, b: number) =>
      moves(load('a', { workers: 2, waiting: a }), load('b', { workers: 1, waiting: b }));
    expect(waiting(10, 24)).toEqual(['a.busy>b!']);
    expect(waiting(10, 23)).toEqual([]);
    // The worker does not move back after the move.
    expect(moves(load('a', { workers: 1, waiting: 10 }), load('b', { workers: 2, waiting: 24 }))).toEqual([]);
  });

  it('gets no busy worker if loads are similar, nor the last one of a shard', () => {
    expect(moves(load('a', { workers: 2, waiting: 90 }), load('b', { workers: 2, waiting: 100 }))).toEqual([]);
    expect(moves(load('a', { workers: 1, waiting: 1 }), load('b', { workers: 1, waiting: 1000 }))).toEqual([]);
  });
});

it('plans no moves without workers', () => {
  expect(moves(load('a', { waiting: 1 }), load('b', { waiting: 1 }))).toEqual([]);
});
