/**
 * Which of the requests that wait go to which worker now. Pure: no clock, no Redis.
 *
 * Rows join a running worker at any step, so there is nothing to wait for while a worker is idle. While all are busy,
 * a batch that does not fill their free slots waits up to `timeoutMs` for company. Workers without their model in memory get what
 * the others have no room for.
 */

import { type Dispatchable, groupBy, type OpenWorker, type PlannedLease, type WaitingRequest } from '@darkroom/core';

export interface BatchPolicy {
  /** Slots that one lease fills at most. */
  maxSize: number;
  timeoutMs: number;
  /** False: every request gets a worker for itself. */
  isBatching: boolean;
  /** Deliveries after which a request is given up: the last of them runs alone. */
  maxAttempts: number;
  /** Requests beyond what finds room that are looked at, so that those of one shape go together. */
  lookahead: number;
}

export interface Plan {
  leases: readonly PlannedLease[];
  /** To be kept free of others, until what must run alone finds it idle. */
  reserveWorkerId: string | undefined;
  /** Decide again after this time if nothing else happens before: a batch waits for company, ms. */
  againInMs: number | undefined;
}

/**
 * Decides over a bounded look at the queue and the workers. The first of each shape goes first, to an idle worker or to one
 * that already runs its shape, else to the one with most room. What must run alone, because it may be what kills its workers,
 * waits for an idle worker and stops nobody else.
 */
export function planLeases({ nowMs, reservedWorkerId, workers, requests }: Dispatchable, policy: BatchPolicy): Plan {
  const free = new Map(workers.map((worker) => [worker.id, { ...worker }]));
  const leases: PlannedLease[] = [];
  const mustBeAlone = ({ attempts }: WaitingRequest): boolean =>
    !policy.isBatching || attempts >= policy.maxAttempts - 1;
  const reserveWorkerId = leaseAlone(requests.filter(mustBeAlone), { free, leases, reservedWorkerId, policy });
  if (reserveWorkerId !== undefined) free.delete(reserveWorkerId);
  const shared = requests.filter((request) => !mustBeAlone(request));
  const next = withinRoom(shared, [...free.values()], policy.lookahead);
  let againInMs: number | undefined;
  for (const group of groupBy(next, ({ shapeKey }) => shapeKey)) {
    const idle = [...free.values()].filter(({ isIdle }) => isIdle).length;
    const slots = sumOf(group, ({ slots: own }) => own);
    const left = sumOf([...free.values()], (worker) => worker.free);
    const room = Math.min(policy.maxSize, left);
    const waitMs = group[0]!.waitingSinceMs + policy.timeoutMs - nowMs;
    if (idle === 0 && room > 0 && slots < room && waitMs > 0) {
      againInMs = Math.min(againInMs ?? waitMs, waitMs);
      continue;
    }
    // Several idle workers share the work: half the rows each is faster than all rows on one.
    const share = Math.min(policy.maxSize, Math.ceil(slots / Math.max(1, idle)));
    leaseShared(group, { free, leases, share });
  }
  return { leases, reserveWorkerId, againInMs };
}

interface Board {
  free: Map<string, OpenWorker>;
  leases: PlannedLease[];
}

/** An idle worker for each. Returns the worker to be emptied for the first that found none. */
function leaseAlone(
  requests: readonly WaitingRequest[],
  { free, leases, reservedWorkerId, policy }: Board & { reservedWorkerId: string | undefined; policy: BatchPolicy },
): string | undefined {
  for (const { id } of requests) {
    // One that still runs what has promised its slots to others is not alone, nor is one that loads for others.
    const empty = [...free.values()].filter(
      ({ isIdle, isAsleep, shapes }) => (isIdle || isAsleep) && shapes.length === 0,
    );
    const worker =
      empty.find((candidate) => candidate.id === reservedWorkerId) ?? empty.find(({ isIdle }) => isIdle) ?? empty[0];
    // Without batching nothing else keeps a worker from becoming idle.
    if (worker === undefined) return policy.isBatching ? (reservedWorkerId ?? best([...free.values()])?.id) : undefined;
    free.delete(worker.id);
    leases.push({ workerId: worker.id, isExclusive: true, requestIds: [id] });
  }
  return undefined;
}

/** In parts of about `share` slots; the last request of a part may overhang, and then waits for its room inside the worker. */
function leaseShared(requests: readonly WaitingRequest[], { free, leases, share }: Board & { share: number }): void {
  let rest = [...requests];
  while (rest.length > 0) {
    const candidates = [...free.values()].filter((worker) => worker.free > 0);
    const { shapeKey } = rest[0]!;
    const worker = candidates.find(({ isIdle }) => isIdle) ?? best(candidates, shapeKey);
    if (worker === undefined) return;
    // At least one, whatever it says that it takes.
    let room = Math.min(share, worker.free) - rest[0]!.slots;
    let count = 1;
    while (count < rest.length && room > 0) room -= rest[count++]!.slots;
    const taken = rest.slice(0, count);
    free.set(worker.id, {
      ...worker,
      isIdle: false,
      shapes: [...worker.shapes, shapeKey],
      free: worker.free - sumOf(taken, ({ slots }) => slots),
    });
    leases.push({ workerId: worker.id, isExclusive: false, requestIds: taken.map(({ id }) => id) });
    rest = rest.slice(count);
  }
}

/** Those that go next: nobody else is to overtake them because of a shape. */
function withinRoom(
  requests: readonly WaitingRequest[],
  workers: readonly OpenWorker[],
  lookahead: number,
): readonly WaitingRequest[] {
  let room = sumOf(workers, ({ free }) => free);
  let count = 0;
  while (count < requests.length && room > 0) room -= requests[count++]!.slots;
  return requests.slice(0, count === 0 ? 0 : count + lookahead);
}

/** One that is awake, at best with rows of this shape; else one that loads its model anyway. Of those the one with most room. */
function best(workers: readonly OpenWorker[], shapeKey?: string): OpenWorker | undefined {
  const rankOf = ({ isAsleep, shapes }: OpenWorker): number => {
    if (isAsleep) return shapes.length > 0 ? 2 : 3;
    return shapeKey !== undefined && shapes.includes(shapeKey) ? 0 : 1;
  };
  return workers.toSorted((left, right) => rankOf(left) - rankOf(right) || right.free - left.free)[0];
}

function sumOf<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}
