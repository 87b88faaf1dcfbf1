/** The highest logit, and the one that stands at a rank when they are sorted. */
export interface LogitRange {
  /** Not finite if one of the logits is no number, or none is finite. */
  readonly highest: number;
  readonly lowest: number;
}

/**
 * The highest logits, without sorting: a heap of as many as the rank, whose lowest is replaced by whatever is higher. Most
 * logits cost one comparison.
 *
 * @param rank 1 is the highest; at most as many as there are.
 */
export function topRange(logits: Float32Array, rank: number): LogitRange {
  const heap = new Float32Array(rank).fill(-Infinity);
  let lowest = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    // Of NaN nothing is true.
    if (logit <= lowest) continue;
    if (Number.isNaN(logit)) return { highest: NaN, lowest };
    replaceLowest(heap, logit);
    lowest = heap[0]!;
  }
  return { highest: heap.reduce((highest, logit) => Math.max(highest, logit)), lowest };
}

/** Ids of the highest logits, the highest first; of equals the one with the lower id. */
export function topTokens(logits: Float32Array, count: number): number[] {
  const lowest = count === 0 ? Infinity : topRange(logits, Math.min(count, logits.length)).lowest;
  const ids: number[] = [];
  for (let id = 0; id < logits.length; id++) if (logits[id]! >= lowest) ids.push(id);
  // Stable: equals stay in the order of their ids.
  return ids.toSorted((left, right) => logits[right]! - logits[left]!).slice(0, count);
}

function replaceLowest(heap: Float32Array, value: number): void {
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    if (child + 1 < heap.length && heap[child + 1]! < heap[child]!) child += 1;
    if (heap[child]! >= value) break;
    heap[at] = heap[child]!;
    at = child;
  }
  heap[at] = value;
}
