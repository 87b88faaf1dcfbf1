import { numberAt } from '@darkroom/core';

/** The highest logit, and the one at a given rank. */
export interface LogitRange {
  /** Not finite if a logit is NaN, or none is finite. */
  readonly highest: number;
  readonly lowest: number;
}

/** Result of `topLogits`. */
export interface TopLogits extends LogitRange {
  /** Number of ids that were written. */
  readonly count: number;
}

/**
 * Finds the highest logits without sorting, with a heap of `rank` logits; most logits cost one comparison.
 *
 * @param rank 1 is the highest; at most the number of logits.
 * @param ids receives, in order, the ids of the highest logits, and some that lower ones held before higher ones came.
 * Must be as long as the logits.
 */
export function topLogits(logits: Float32Array, rank: number, ids: Uint32Array): TopLogits {
  const heap = new Float32Array(rank).fill(-Infinity);
  let lowest = -Infinity;
  let count = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = numberAt(logits, id);
    // Comparisons with NaN are false, so NaN reaches the next check.
    if (logit < lowest) continue;
    if (Number.isNaN(logit)) return { highest: NaN, lowest, count };
    ids[count++] = id;
    if (logit === lowest) continue;
    replaceLowest(heap, logit);
    lowest = numberAt(heap, 0);
  }
  return { highest: heap.reduce((highest, logit) => Math.max(highest, logit)), lowest, count };
}

/** Returns the ids of the highest logits, best first; of equals the lower id first. */
export function topTokens(logits: Float32Array, count: number): number[] {
  if (count === 0) return [];
  const ids = new Uint32Array(logits.length);
  const top = topLogits(logits, Math.min(count, logits.length), ids);
  const among = [...ids.subarray(0, top.count)].filter((id) => numberAt(logits, id) >= top.lowest);
  // A stable sort: equals stay in the order of their ids.
  return among.toSorted((left, right) => numberAt(logits, right) - numberAt(logits, left)).slice(0, count);
}

function replaceLowest(heap: Float32Array, value: number): void {
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && numberAt(heap, child + 1) < numberAt(heap, child)) child += 1;
    const lower = numberAt(heap, child);
    if (lower >= value) break;
    heap[at] = lower;
    at = child;
  }
  heap[at] = value;
}
