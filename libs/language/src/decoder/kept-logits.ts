import type { TensorSpec, TensorValue } from '@darkroom/runtime';

/** Input names that exporters use for the number of last positions with logits; a graph without one computes all. */
export const keptLogitsInputs = ['num_logits_to_keep', 'logits_to_keep'];

/** The positions of a call with logits. */
export interface KeptLogits {
  /** Number of last positions with logits. */
  readonly count: number;
  readonly feeds: Readonly<Record<string, TensorValue>>;
}

/**
 * Limits the computed logits to the positions needed.
 *
 * @param width new tokens of the call.
 * @param from index of the first new token, in any row, whose logits are needed.
 */
export function keptLogits(
  { inputs }: { readonly inputs: readonly TensorSpec[] },
  { width, from }: { width: number; from: number },
): KeptLogits {
  const input = inputs.find(({ name }) => keptLogitsInputs.includes(name));
  if (input === undefined) return { count: width, feeds: {} };
  const count = Math.max(1, width - from);
  const dims = input.shape.map(() => 1);
  return { count, feeds: { [input.name]: { data: BigInt64Array.of(BigInt(count)), dims } } };
}
