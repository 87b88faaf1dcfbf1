import type { ShardLoad } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { planMoves } from './plan-moves.ts';

const policy = { heldUpMs: 500 };

/** A shard of so many workers, of which so many have nothing to do: `<shard>.<n>`. */
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

/** `worker>shard`, `!` where it is to end what it has before. */
function moves(...loads: ShardLoad[]): string[] {
  return planMoves(loads, policy).map(({ workerId, to, isPatient }) => `${workerId}>${to}${isPatient ? '!' : ''}`);
}

/** What comes of them, with all workers at rest. */
function spread(...counts: number[]): number[] {
  const planned = planMoves(
    counts.map((idle, at) => load(String(at), { idle })),
    policy,
  );
  return counts.map((count, at) => {
    const [came, went] = (['to', 'from'] as const).map((end) => planned.filter((move) => move[end] === String(at)));
    return count + came!.length - went!.length;
  });
}

describe('at rest', () => {
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
    expect(spread(...before).toSorted((left, right) => right - left)).toEqual(after);
  });

  it.each([[[1, 0]], [[3, 2]], [[2, 1, 1]], [[0, 0]]])('%j stay where they are', (counts) => {
    expect(spread(...counts)).toEqual(counts);
  });

  it('all leave a shard that takes nothing any more', () => {
    expect(moves(load('a', { idle: 2 }), load('b', { idle: 2, isOpen: false }))).toEqual(['b.0>a', 'b.1>a']);
  });

  it('some that have nothing to do come from where there are more, although others have', () => {
    expect(moves(load('a', { idle: 1, workers: 3 }), load('b', { workers: 1 }))).toEqual(['a.0>b']);
  });
});

describe('where requests wait', () => {
  it('comes who has nothing to do elsewhere, as many as there are requests, and the last one stays', () => {
    expect(moves(load('a', { idle: 3 }), load('b', { workers: 3, waiting: 1 }))).toEqual(['a.0>b']);
    expect(moves(load('a', { idle: 3 }), load('b', { workers: 3, waiting: 9 }))).toEqual(['a.0>b', 'a.1>b']);
  });

  it('the last one comes if there is no other, at once', () => {
    expect(moves(load('a', { idle: 1 }), load('b', { waiting: 1, oldestMs: 0 }))).toEqual(['a.0>b']);
    expect(moves(load('a', { idle: 1 }), load('b', { waiting: 1, isOpen: false }))).toEqual(['a.0>b']);
  });

  it('nobody comes for what has just come, or has workers with nothing to do', () => {
    expect(moves(load('a', { idle: 2 }), load('b', { workers: 2, waiting: 9, oldestMs: 499 }))).toEqual([]);
    expect(moves(load('a', { idle: 2 }), load('b', { idle: 1, workers: 2, waiting: 9 }))).toEqual([]);
  });

  it('and no worker is, one comes that has work: of those with least to do', () => {
    expect(moves(load('a', { workers: 1, waiting: 5 }), load('b', { waiting: 1, oldestMs: 0 }))).toEqual(['a.busy>b!']);
    const [a, b] = [load('a', { workers: 1, waiting: 9 }), load('b', { workers: 1, waiting: 1 })];
    expect(moves(a, b, load('c', { waiting: 5 }))).toEqual(['b.busy>c!']);
  });

  it('more than twice as much for each as elsewhere, one comes that has work', () => {
    const waiting = (a: number, b: number) =>
      moves(load('a', { workers: 2, waiting: a }), load('b', { workers: 1, waiting: b }));
    expect(waiting(10, 24)).toEqual(['a.busy>b!']);
    expect(waiting(10, 23)).toEqual([]);
    // Back again only when it is so there.
    expect(moves(load('a', { workers: 1, waiting: 10 }), load('b', { workers: 2, waiting: 24 }))).toEqual([]);
  });

  it('alike, all stay, and the last one of a shard does', () => {
    expect(moves(load('a', { workers: 2, waiting: 90 }), load('b', { workers: 2, waiting: 100 }))).toEqual([]);
    expect(moves(load('a', { workers: 1, waiting: 1 }), load('b', { workers: 1, waiting: 1000 }))).toEqual([]);
  });
});

it('with no worker at all, nothing', () => {
  expect(moves(load('a', { waiting: 1 }), load('b', { waiting: 1 }))).toEqual([]);
});
