/** The highest logit, and the one that stands at a rank when they are sorted. */
export interface LogitRange {
  /** Not finite if one of the logits is no number, or none is finite. */
  readonly highest: number;
  readonly lowest: number;
}

/** What may be among the highest. */
export interface TopLogits extends LogitRange {
  /** So many of the ids are. */
  readonly count: number;
}

/**
 * The highest logits, without sorting: a heap of as many as the rank, whose lowest is replaced by whatever is higher. Most
 * logits cost one comparison.
 *
 * @param rank 1 is the highest; at most as many as there are.
 * @param ids room for as many as there are logits: gets those of all that are among the highest, in order, and of some others
 * that were before higher ones came.
 */
export function topLogits(logits: Float32Array, rank: number, ids: Uint32Array): TopLogits {
  const heap = new Float32Array(rank).fill(-Infinity);
  let lowest = -Infinity;
  let count = 0;
  for (let id = 0; id < logits.length; id++) {
    const logit = logits[id]!;
    // Of NaN nothing is true.
    if (logit < lowest) continue;
    if (Number.isNaN(logit)) return { highest: NaN, lowest, count };
    ids[count++] = id;
    if (logit === lowest) continue;
    replaceLowest(heap, logit);
    lowest = heap[0]!;
  }
  return { highest: heap.reduce((highest, logit) => Math.max(highest, logit)), lowest, count };
}

/** Ids of the highest logits, the highest first; of equals the one with the lower id. */
export function topTokens(logits: Float32Array, count: number): number[] {
  if (count === 0) return [];
  const ids = new Uint32Array(logits.length);
  const top = topLogits(logits, Math.min(count, logits.length), ids);
  const among = [...ids.subarray(0, top.count)].filter((id) => logits[id]! >= top.lowest);
  // Stable: equals stay in the order of their ids.
  return among.toSorted((left, right) => logits[right]! - logits[left]!).slice(0, count);
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
