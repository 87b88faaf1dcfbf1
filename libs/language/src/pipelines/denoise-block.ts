import { adjustLogits, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import { chooseRatedToken } from '../sampling/choose-token.ts';
import type { RandomNumbers } from '../sampling/random-numbers.ts';
import type { TextRequest } from '../row/text-request.ts';

/** A place of a block whose token is not known yet. */
export const unknownToken = -1;

export interface DenoiseBlockOptions {
  request: TextRequest;
  /** How probable a token must be to stay. */
  confidenceThreshold: number;
  /** It stands for what is not known, so it is never a token of the text. */
  maskId: number;
  adjustment: LogitAdjustment;
  /** How often each token was written before this block. */
  counts: ReadonlyMap<number, number>;
  random: RandomNumbers;
  /** Logits of each place, those of tokens only; they are changed. */
  logitsOf: (place: number) => Float32Array;
}

interface Proposal {
  readonly place: number;
  readonly id: number;
  readonly probability: number;
}

/**
 * Makes tokens known: those that are probable enough, the most probable in any case (SDAR's `low_confidence_dynamic`); or a
 * fixed number of the most probable (`low_confidence_static`).
 *
 * @param block ids; only its unknown places are looked at. It is changed.
 * @returns whether that could be done: not if a logit is no number.
 */
export function denoiseBlock(block: number[], options: DenoiseBlockOptions): boolean {
  const { request, confidenceThreshold, maskId, adjustment, counts, random, logitsOf } = options;
  const proposals: Proposal[] = [];
  for (const [place, id] of block.entries()) {
    if (id !== unknownToken) continue;
    const logits = logitsOf(place);
    adjustLogits(logits, adjustment, counts);
    logits[maskId] = -Infinity;
    const chosen = chooseRatedToken(logits, request, random);
    if (chosen === undefined) return false;
    proposals.push({ place, ...chosen });
  }
  // Stable: of equals the first stays first.
  const ranked = proposals.toSorted((left, right) => right.probability - left.probability);
  const { tokensPerCall } = request;
  for (const [rank, { place, id, probability }] of ranked.entries()) {
    const stays = tokensPerCall === undefined ? probability >= confidenceThreshold : rank < tokensPerCall;
    if (stays || rank === 0) block[place] = id;
  }
  return true;
}
