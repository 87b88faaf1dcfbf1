import { numberAt } from '@darkroom/core';
import type { TextInput } from '@darkroom/kinds';

/** A request's biases and penalties, prepared for repeated use. */
export interface LogitAdjustment {
  /** Added to the logits of single tokens. */
  readonly bias: readonly (readonly [id: number, bias: number])[];
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
}

/** Requires token ids within the vocabulary. */
export function createLogitAdjustment(
  input: Pick<TextInput, 'logitBias' | 'presencePenalty' | 'frequencyPenalty'>,
): LogitAdjustment {
  const { logitBias, presencePenalty, frequencyPenalty } = input;
  return { bias: Object.entries(logitBias).map(([id, bias]) => [Number(id), bias]), presencePenalty, frequencyPenalty };
}

/**
 * Adds biases and subtracts penalties, in place. OpenAI's formula: `count × frequency + (count > 0) × presence`.
 *
 * @param logits one per token.
 * @param counts how often each token was written so far.
 */
export function adjustLogits(
  logits: Float32Array,
  { bias, presencePenalty, frequencyPenalty }: LogitAdjustment,
  counts: ReadonlyMap<number, number>,
): void {
  for (const [id, added] of bias) logits[id] = numberAt(logits, id) + added;
  if (presencePenalty === 0 && frequencyPenalty === 0) return;
  for (const [id, count] of counts) logits[id] = numberAt(logits, id) - (count * frequencyPenalty + presencePenalty);
}

/**
 * Excludes tokens in place.
 *
 * @param logits one per token.
 * @param words one bit per token, the lowest of a word first: 1 if allowed.
 * @returns true if any token is allowed.
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
