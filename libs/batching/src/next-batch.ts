/**
 * Which of the requests a former holds go to a worker next, and when. Pure: no clock, no Redis.
 *
 * Rows join a running worker at any step, so there is nothing to wait for while a worker is idle. While all are busy,
 * a batch that does not fill their free rows waits up to `timeoutMs` for company.
 */

/** A request taken out of the queue and not leased yet. */
export interface HeldRequest {
  /** Requests with the same key may share a step. */
  shapeKey: string;
  slots: number;
  /** When it was taken, ms. */
  takenAtMs: number;
  /** To be leased to an idle worker for itself. */
  isAlone: boolean;
}

/** What the live workers of the model could take. */
export interface Capacity {
  idle: number;
  busy: number;
  freeRows: number;
}

export interface BatchPolicy {
  /** Rows of a worker. */
  maxSize: number;
  timeoutMs: number;
  /** False: every request gets a worker for itself. */
  isBatching: boolean;
}

export type BatchDecision<Held extends HeldRequest> =
  | { kind: 'lease'; batch: readonly Held[]; mode: 'shared' | 'exclusive'; maxRows: number }
  /** Decide again at this time, ms, if nothing else happens before. */
  | { kind: 'wait'; untilMs: number }
  /** Nothing can go before a worker or a request comes. */
  | { kind: 'idle' };

/** Decides over what is held, in dispatch order. The first request always goes first: nothing overtakes it for good. */
export function nextBatch<Held extends HeldRequest>(
  held: readonly Held[],
  { idle, freeRows }: Capacity,
  { maxSize, timeoutMs, isBatching }: BatchPolicy,
  nowMs: number,
): BatchDecision<Held> {
  const [first] = held;
  if (first === undefined) return { kind: 'idle' };
  // Asked for even while no worker is idle: asking reserves one.
  if (first.isAlone || (!isBatching && idle > 0))
    return { kind: 'lease', batch: [first], mode: 'exclusive', maxRows: maxSize };
  if (!isBatching || freeRows < 1) return { kind: 'idle' };

  const companions = held.filter(({ shapeKey, isAlone }) => shapeKey === first.shapeKey && !isAlone);
  const rows = companions.reduce((sum, request) => sum + request.slots, 0);
  const untilMs = first.takenAtMs + timeoutMs;
  if (idle === 0 && rows < Math.min(maxSize, freeRows) && nowMs < untilMs) return { kind: 'wait', untilMs };
  // Several idle workers share the work: half the rows each is faster than all rows on one.
  const maxRows = Math.min(maxSize, Math.ceil(rows / Math.max(1, idle)));
  return { kind: 'lease', batch: companions.slice(0, maxRows), mode: 'shared', maxRows };
}

/** What waits in the queue, not taken by any former. */
export interface Supply {
  /** Jobs in it. */
  takeable: number;
  /** Rows of the first of them, in the order they come out; at least as many as could find room. */
  nextRows: readonly number[];
}

/** How many more requests to take out of the queue: what the workers have room for, and a look-ahead that fills batches. */
export function takeCount(
  held: readonly HeldRequest[],
  { idle, busy, freeRows }: Capacity,
  { takeable, nextRows }: Supply,
  { lookahead, isBatching }: { lookahead: number; isBatching: boolean },
): number {
  // Without a worker everything stays in the queue, where it can be overtaken and canceled.
  if (idle + busy === 0) return 0;
  if (!isBatching) return Math.max(0, Math.min(idle - held.length + lookahead, takeable));
  const heldRows = held.reduce((sum, request) => sum + request.slots, 0);
  let room = Math.max(0, freeRows) - heldRows;
  // The look-ahead is in requests: what is held beyond the room uses it up.
  let count = Math.min(0, room);
  for (const rows of nextRows) {
    if (room < 1) break;
    room -= rows;
    count += 1;
  }
  return Math.max(0, Math.min(count + lookahead, takeable));
}
