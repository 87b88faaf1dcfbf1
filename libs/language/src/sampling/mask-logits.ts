/**
 * Makes tokens impossible, in place.
 *
 * @param logits one for each token.
 * @param words a bit for each token, the lowest of a word first: 1 for those that may come.
 * @returns whether any may come.
 */
export function maskLogits(logits: Float32Array, words: Int32Array): boolean {
  let isAny = false;
  for (let at = 0, from = 0; from < logits.length; at++, from += 32) {
    const word = words[at] ?? 0;
    if (word !== 0) isAny = true;
    if (word === -1) continue;
    const to = Math.min(from + 32, logits.length);
    if (word === 0) logits.fill(-Infinity, from, to);
    else for (let id = from; id < to; id++) if (((word >> (id - from)) & 1) === 0) logits[id] = -Infinity;
  }
  return isAny;
}
