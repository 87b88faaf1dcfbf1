import type { OnnxTensor } from './read-onnx-file.ts';

/** What is said of weights of each of ONNX's element types, by its number. Others are no weights: shapes, axes, masks. */
const dtypesOfTypes: ReadonlyMap<number, string> = new Map([
  [1, 'fp32'],
  [2, 'int8'],
  [3, 'int8'],
  [10, 'fp16'],
  [16, 'bf16'],
  [21, 'int4'],
  [22, 'int4'],
]);

/**
 * How a graph keeps its weights: the type that most of their numbers have. Those of INT8 come with scales and biases of
 * floats, and those of fp16 often with norms of float32.
 *
 * @returns `fp32`, `fp16`, `int8`, `bf16` or `int4`; undefined for a graph without weights.
 */
export function dtypeOfWeights(tensors: readonly OnnxTensor[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { dataType, count } of tensors) {
    const dtype = dtypesOfTypes.get(dataType);
    if (dtype !== undefined) counts.set(dtype, (counts.get(dtype) ?? 0) + count);
  }
  return [...counts].toSorted(([, left], [, right]) => right - left)[0]?.[0];
}
