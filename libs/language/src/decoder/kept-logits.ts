import type { TensorSpec, TensorValue } from '@darkroom/runtime';

/** Exporters' names for the number of last positions that logits are computed of; a graph without it computes all. */
export const keptLogitsInputs = ['num_logits_to_keep', 'logits_to_keep'];

/** Of which positions of a call there are logits. */
export interface KeptLogits {
  /** The last so many. */
  readonly count: number;
  readonly feeds: Readonly<Record<string, TensorValue>>;
}

/**
 * @param width new tokens of the call.
 * @param from the first of them that logits are wanted of, of any row.
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
