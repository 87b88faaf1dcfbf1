import type { TextInput } from '@darkroom/kinds';

/** Changes of logits that a request asks for, ready to be used again and again. */
export interface LogitAdjustment {
  /** What is added to the logits of single tokens. */
  readonly bias: readonly (readonly [id: number, bias: number])[];
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
}

/** Of a request whose ids of tokens are known to be in the vocabulary. */
export function createLogitAdjustment(
  input: Pick<TextInput, 'logitBias' | 'presencePenalty' | 'frequencyPenalty'>,
): LogitAdjustment {
  const { logitBias, presencePenalty, frequencyPenalty } = input;
  return { bias: Object.entries(logitBias).map(([id, bias]) => [Number(id), bias]), presencePenalty, frequencyPenalty };
}

/**
 * Adds biases and takes penalties off, in place: OpenAI's formula, `count × frequency + (count > 0) × presence`.
 *
 * @param logits one for each token.
 * @param counts how often each token was written so far.
 */
export function adjustLogits(
  logits: Float32Array,
  { bias, presencePenalty, frequencyPenalty }: LogitAdjustment,
  counts: ReadonlyMap<number, number>,
): void {
  for (const [id, added] of bias) logits[id]! += added;
  if (presencePenalty === 0 && frequencyPenalty === 0) return;
  for (const [id, count] of counts) logits[id]! -= count * frequencyPenalty + presencePenalty;
}
