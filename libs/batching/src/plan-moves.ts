import type { ShardLoad, WorkerMove } from '@darkroom/core';

type Load = Omit<ShardLoad, 'idle'> & { idle: string[] };

/**
 * Which workers of a model change its shards. A worker serves one at a time. Those with nothing to do go where requests wait, or where there
 * are fewer; no open shard gives its last one for less than a shard that has none. One that has work goes, after that, only where there is
 * no worker at all, or more than twice as much to do for each: if no other one could. Workers at rest stay where they are once they
 * are spread evenly, so nothing goes to and fro.
 *
 * @param heldUpMs who waits for so long waits for room, and not for the former.
 */
export function planMoves(loads: readonly ShardLoad[], { heldUpMs }: { heldUpMs: number }): WorkerMove[] {
  const shards = loads.map((load): Load => ({ ...load, idle: [...load.idle] }));
  const moves = [...movesToNeed(shards, heldUpMs), ...movesAtRest(shards)];
  if (moves.length > 0) return moves;
  const move = patientMove(shards, heldUpMs);
  return move === undefined ? [] : [move];
}

function movesToNeed(shards: readonly Load[], heldUpMs: number): WorkerMove[] {
  const moves: WorkerMove[] = [];
  for (;;) {
    const to = most(
      shards.filter((shard) => isInNeed(shard, heldUpMs)),
      needOf,
    );
    if (to === undefined) return moves;
    const mayGo = (shard: Load): boolean => !shard.isOpen || shard.workers > 1 || to.workers === 0;
    const from = most(
      shards.filter((shard) => shard !== to && isAtRest(shard) && mayGo(shard)),
      ({ workers }) => workers,
    );
    if (from === undefined) return moves;
    moves.push(send(from, to));
  }
}

function movesAtRest(shards: readonly Load[]): WorkerMove[] {
  const moves: WorkerMove[] = [];
  for (;;) {
    const to = most(
      shards.filter(({ isOpen }) => isOpen),
      ({ workers }) => -workers,
    );
    const resting = shards.filter((shard) => shard !== to && isAtRest(shard));
    const from = resting.find(({ isOpen }) => !isOpen) ?? most(resting, ({ workers }) => workers);
    if (to === undefined || from === undefined) return moves;
    if (from.isOpen && from.workers - to.workers < 2) return moves;
    moves.push(send(from, to));
  }
}

function patientMove(shards: readonly Load[], heldUpMs: number): WorkerMove | undefined {
  const to = most(
    shards.filter((shard) => isInNeed(shard, heldUpMs)),
    needOf,
  );
  if (to === undefined) return undefined;
  const mayGo = (shard: Load): boolean => {
    if (to.workers === 0) return true;
    return 2 * demandOf(shard) * to.workers < demandOf(to) * (shard.workers - 1);
  };
  const others = shards.filter((shard) => shard !== to && shard.busy !== undefined && mayGo(shard));
  const from = most(others, (shard) => -demandOf(shard) / shard.workers);
  return from && { workerId: from.busy!, from: from.shard, to: to.shard, isPatient: true };
}

function send(from: Load, to: Load): WorkerMove {
  from.workers -= 1;
  to.workers += 1;
  // It takes one of them at least.
  to.waiting = Math.max(0, to.waiting - 1);
  return { workerId: from.idle.shift()!, from: from.shard, to: to.shard, isPatient: false };
}

function isInNeed({ waiting, workers, idle, oldestMs }: Load, heldUpMs: number): boolean {
  return waiting > 0 && idle.length === 0 && (workers === 0 || oldestMs >= heldUpMs);
}

function isAtRest({ waiting, idle }: Load): boolean {
  return waiting === 0 && idle.length > 0;
}

function demandOf({ waiting, running }: Load): number {
  return waiting + running;
}

/** A shard without a worker goes first. */
function needOf(shard: Load): number {
  return demandOf(shard) / shard.workers;
}

/** The first of those with the highest rank. */
function most<Item>(items: readonly Item[], rankOf: (item: Item) => number): Item | undefined {
  let best: Item | undefined;
  for (const item of items) if (best === undefined || rankOf(item) > rankOf(best)) best = item;
  return best;
}
