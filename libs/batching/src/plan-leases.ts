/**
 * Plans which queued requests go to which worker. Pure: no clock, no Redis. Rows join a running worker at any step, so
 * requests wait for a batch only while all workers are busy, up to `timeoutMs`. Sleeping workers get what does not fit
 * on others.
 */

import {
  type Dispatchable,
  groupBy,
  type OpenWorker,
  type PlannedLease,
  type QueuedRequest,
  isNonEmpty,
  type NonEmpty,
} from '@darkroom/core';

export interface BatchPolicy {
  /** Max slots per lease. */
  maxSize: number;
  timeoutMs: number;
}

export interface Plan {
  leases: readonly PlannedLease[];
  /** Worker that must get no shared leases until an exclusive request finds it idle. */
  reserveWorkerId: string | undefined;
  /** Plan again after this time if nothing else happens, ms: a batch waits for more requests. */
  retryInMs: number | undefined;
}

/**
 * Plans over a bounded snapshot of the queue and the workers. Requests of one shape go together: to an idle worker,
 * else to one that runs their shape, else to the one with most free slots. A last attempt runs alone, because it may be
 * what kills its workers: it waits for an idle worker and delays no other request.
 */
export function planLeases({ nowMs, reservedWorkerId, workers, requests }: Dispatchable, policy: BatchPolicy): Plan {
  const free = new Map(workers.map((worker) => [worker.id, { ...worker }]));
  const leases: PlannedLease[] = [];
  const mustBeAlone = ({ attemptsLeft }: QueuedRequest): boolean => policy.maxSize === 1 || attemptsLeft <= 1;
  const reserveWorkerId = leaseAlone(requests.filter(mustBeAlone), { free, leases, reservedWorkerId });
  if (reserveWorkerId !== undefined) free.delete(reserveWorkerId);
  const shared = requests.filter((request) => !mustBeAlone(request));
  const next = takeFitting(shared, [...free.values()]);
  let retryInMs: number | undefined;
  for (const group of groupBy(next, ({ shapeKey }) => shapeKey)) {
    const idle = [...free.values()].filter(({ isIdle }) => isIdle).length;
    const slots = sumOf(group, (request) => request.slots);
    const left = sumOf([...free.values()], (worker) => worker.free);
    const freeSlots = Math.min(policy.maxSize, left);
    const waitMs = group[0].waitingSinceMs + policy.timeoutMs - nowMs;
    if (idle === 0 && freeSlots > 0 && slots < freeSlots && waitMs > 0) {
      retryInMs = Math.min(retryInMs ?? waitMs, waitMs);
      continue;
    }
    // Divide the work among idle workers: half the rows each is faster than all rows on one.
    const share = Math.min(policy.maxSize, Math.ceil(slots / Math.max(1, idle)));
    leaseShared(group, { free, leases, share });
  }
  return { leases, reserveWorkerId, retryInMs };
}

interface PlanState {
  free: Map<string, OpenWorker>;
  leases: PlannedLease[];
}

/** Plans exclusive leases on idle workers. Returns the worker to reserve for the first request that found none. */
function leaseAlone(
  requests: readonly QueuedRequest[],
  { free, leases, reservedWorkerId }: PlanState & { reservedWorkerId: string | undefined },
): string | undefined {
  for (const { id } of requests) {
    // Workers with shapes still run rows whose slots are released, or load for other requests.
    const empty = [...free.values()].filter(
      ({ isIdle, isAsleep, shapes }) => (isIdle || isAsleep) && shapes.length === 0,
    );
    const worker =
      empty.find((candidate) => candidate.id === reservedWorkerId) ?? empty.find(({ isIdle }) => isIdle) ?? empty[0];
    if (worker === undefined) return reservedWorkerId ?? findBest([...free.values()])?.id;
    free.delete(worker.id);
    leases.push({ workerId: worker.id, isExclusive: true, requestIds: [id] });
  }
  return undefined;
}

/**
 * Plans leases of about `share` slots. The last request of a lease may exceed the free slots; it then waits inside the
 * worker.
 */
function leaseShared(requests: readonly QueuedRequest[], { free, leases, share }: PlanState & { share: number }): void {
  let rest = requests;
  while (isNonEmpty(rest)) {
    const candidates = [...free.values()].filter((worker) => worker.free > 0);
    const { shapeKey } = rest[0];
    const worker = candidates.find(({ isIdle }) => isIdle) ?? findBest(candidates, shapeKey);
    if (worker === undefined) return;
    // At least one request, even one of 0 slots.
    const taken = takeUntilFull(rest, Math.min(share, worker.free));
    free.set(worker.id, {
      ...worker,
      isIdle: false,
      shapes: [...worker.shapes, shapeKey],
      free: worker.free - sumOf(taken, ({ slots }) => slots),
    });
    leases.push({ workerId: worker.id, isExclusive: false, requestIds: taken.map(({ id }) => id) });
    rest = rest.slice(taken.length);
  }
}

/** Returns the first request, and the next ones while slots are left; the last may exceed them. */
function takeUntilFull([first, ...others]: NonEmpty<QueuedRequest>, slots: number): NonEmpty<QueuedRequest> {
  return [first, ...takeWhileSlots(others, slots - first.slots)];
}

function takeWhileSlots(requests: readonly QueuedRequest[], slots: number): readonly QueuedRequest[] {
  const taken: QueuedRequest[] = [];
  let slotsLeft = slots;
  for (const request of requests) {
    if (slotsLeft <= 0) break;
    taken.push(request);
    slotsLeft -= request.slots;
  }
  return taken;
}

/** Returns the requests that fit, in order, and no more: a request must not be overtaken because of its shape. */
function takeFitting(requests: readonly QueuedRequest[], workers: readonly OpenWorker[]): readonly QueuedRequest[] {
  return takeWhileSlots(
    requests,
    sumOf(workers, ({ free }) => free),
  );
}

/**
 * Prefers an awake worker, best with rows of this shape, then one that is loading; among equals the one with most free
 * slots.
 */
function findBest(workers: readonly OpenWorker[], shapeKey?: string): OpenWorker | undefined {
  const rankOf = ({ isAsleep, shapes }: OpenWorker): number => {
    if (isAsleep) return shapes.length > 0 ? 2 : 3;
    return shapeKey !== undefined && shapes.includes(shapeKey) ? 0 : 1;
  };
  return workers.toSorted((left, right) => rankOf(left) - rankOf(right) || right.free - left.free)[0];
}

function sumOf<Item>(items: readonly Item[], read: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + read(item), 0);
}
