import { itemAt, type ShardLoad, type WorkerMove } from '@darkroom/core';

type Load = Omit<ShardLoad, 'idle'> & { idle: string[] };

/**
 * Plans which workers of a model move to another of its shards; a worker serves one shard at a time. Idle workers move
 * to shards with queued requests, else to those with fewer workers until they are spread evenly. Only if no idle worker
 * can help, one busy worker moves to a shard without workers, or with more than twice the load per worker.
 *
 * @param heldUpMs requests that wait longer than this are short of capacity, not of scheduling.
 */
export function planMoves(loads: readonly ShardLoad[], { heldUpMs }: { heldUpMs: number }): WorkerMove[] {
  const shards = loads.map((load): Load => ({ ...load, idle: [...load.idle] }));
  const moves = [...movesToQueues(shards, heldUpMs), ...movesForBalance(shards)];
  if (moves.length > 0) return moves;
  const move = busyMove(shards, heldUpMs);
  return move === undefined ? [] : [move];
}

function movesToQueues(shards: readonly Load[], heldUpMs: number): WorkerMove[] {
  const moves: WorkerMove[] = [];
  for (;;) {
    const to = findMax(
      shards.filter((shard) => lacksWorkers(shard, heldUpMs)),
      loadPerWorker,
    );
    if (to === undefined) return moves;
    const mayGo = (shard: Load): boolean => !shard.isOpen || shard.workers > 1 || to.workers === 0;
    const from = findMax(
      shards.filter((shard) => shard !== to && hasIdleOnly(shard) && mayGo(shard)),
      ({ workers }) => workers,
    );
    if (from === undefined) return moves;
    moves.push(moveIdle(from, to));
  }
}

function movesForBalance(shards: readonly Load[]): WorkerMove[] {
  const moves: WorkerMove[] = [];
  for (;;) {
    const to = findMax(
      shards.filter(({ isOpen }) => isOpen),
      ({ workers }) => -workers,
    );
    const sources = shards.filter((shard) => shard !== to && hasIdleOnly(shard));
    const from = sources.find(({ isOpen }) => !isOpen) ?? findMax(sources, ({ workers }) => workers);
    if (to === undefined || from === undefined) return moves;
    if (from.isOpen && from.workers - to.workers < 2) return moves;
    moves.push(moveIdle(from, to));
  }
}

function busyMove(shards: readonly Load[], heldUpMs: number): WorkerMove | undefined {
  const to = findMax(
    shards.filter((shard) => lacksWorkers(shard, heldUpMs)),
    loadPerWorker,
  );
  if (to === undefined) return undefined;
  const mayGo = (shard: Load): boolean => {
    if (to.workers === 0) return true;
    return 2 * loadOf(shard) * to.workers < loadOf(to) * (shard.workers - 1);
  };
  const others = shards.flatMap((shard) => {
    const { busy: workerId } = shard;
    return workerId !== undefined && shard !== to && mayGo(shard) ? [{ ...shard, workerId }] : [];
  });
  const from = findMax(others, (shard) => -loadOf(shard) / shard.workers);
  return from && { workerId: from.workerId, from: from.shard, to: to.shard, isPatient: true };
}

function moveIdle(from: Load, to: Load): WorkerMove {
  const workerId = itemAt(from.idle, 0);
  from.idle = from.idle.slice(1);
  from.workers -= 1;
  to.workers += 1;
  // The worker takes at least one of the queued requests.
  to.waiting = Math.max(0, to.waiting - 1);
  return { workerId, from: from.shard, to: to.shard, isPatient: false };
}

function lacksWorkers({ waiting, workers, idle, oldestMs }: Load, heldUpMs: number): boolean {
  return waiting > 0 && idle.length === 0 && (workers === 0 || oldestMs >= heldUpMs);
}

function hasIdleOnly({ waiting, idle }: Load): boolean {
  return waiting === 0 && idle.length > 0;
}

function loadOf({ waiting, running }: Load): number {
  return waiting + running;
}

/** Returns the load per worker: infinite for a shard without workers. */
function loadPerWorker(shard: Load): number {
  return loadOf(shard) / shard.workers;
}

/** Returns the first item with the highest rank. */
function findMax<Item>(items: readonly Item[], rankOf: (item: Item) => number): Item | undefined {
  let best: Item | undefined;
  for (const item of items) if (best === undefined || rankOf(item) > rankOf(best)) best = item;
  return best;
}
