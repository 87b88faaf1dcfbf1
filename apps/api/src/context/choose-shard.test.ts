import { expect, it } from 'vitest';
import { createShardChooser } from './choose-shard.ts';

const shards = ['m', 'm~1', 'm~2', 'm~3'];

function countOf(names: readonly string[]): number[] {
  return shards.map((shard) => names.filter((name) => name === shard).length);
}

it('spreads the requests of each owner evenly over all shards, whatever other owners send', () => {
  const choose = createShardChooser(() => 0);
  const [alice, bob]: [string[], string[]] = [[], []];
  for (let turn = 0; turn < 40; turn++) {
    alice.push(choose('alice', { shards, cost: 1 }));
    if (turn % 4 === 0) bob.push(choose('bob', { shards, cost: 1 }));
  }
  expect(countOf(alice)).toEqual([10, 10, 10, 10]);
  expect(countOf(bob).toSorted((left, right) => left - right)).toEqual([2, 2, 3, 3]);
});

it('spreads by cost: an owner that alternates expensive and cheap requests loads shards evenly', () => {
  const choose = createShardChooser(() => 0);
  const two = shards.slice(0, 2);
  const sums = new Map<string, number>();
  for (let turn = 0; turn < 100; turn++) {
    const cost = turn % 2 === 0 ? 9 : 1;
    const shard = choose('', { shards: two, cost });
    sums.set(shard, (sums.get(shard) ?? 0) + cost);
  }
  const [left = 0, right = 0] = [...sums.values()];
  expect(Math.abs(left - right)).toBeLessThanOrEqual(9);
});

it('starts each owner at a random shard', () => {
  let drawn = 0;
  const choose = createShardChooser(() => (drawn = (drawn + 0.618) % 1));
  const first = Array.from({ length: 400 }, (_owner, at) => choose(`owner ${at}`, { shards, cost: 1 }));
  for (const count of countOf(first)) expect(count).toBeGreaterThan(50);
});

it('gives a new shard its share of later requests, and a removed shard none', () => {
  const choose = createShardChooser(() => 0);
  for (let turn = 0; turn < 100; turn++) choose('', { shards: shards.slice(0, 2), cost: 1 });
  const later = Array.from({ length: 30 }, () => choose('', { shards: shards.slice(0, 3), cost: 1 }));
  expect(countOf(later)).toEqual([10, 10, 10, 0]);
  const again = Array.from({ length: 10 }, () => choose('', { shards: shards.slice(0, 1), cost: 1 }));
  expect(countOf(again)).toEqual([10, 0, 0, 0]);
});

it('forgets an owner after requests of ten thousand other owners, and remembers active owners', () => {
  let draws = 0;
  const choose = createShardChooser(() => (draws += 1));
  const drawsOf = (owner: string) => {
    const before = draws;
    choose(owner, { shards, cost: 1 });
    return draws - before;
  };
  drawsOf('idle');
  for (let at = 0; at < 10_000; at++) for (const owner of [`owner ${at}`, 'busy']) drawsOf(owner);
  expect([drawsOf('busy'), drawsOf('idle')]).toEqual([0, shards.length]);
});
