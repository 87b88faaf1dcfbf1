import type { OnnxTensor } from './read-onnx-file.ts';

/**
 * Names of the dtypes that weights have, by ONNX's element type number. Other types are those of shapes, axes and
 * masks.
 */
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
 * Returns the dtype of most of a graph's weights. INT8 graphs also have float scales and biases, fp16 graphs often
 * float32 norms.
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
