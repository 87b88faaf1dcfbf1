export { GrowingArray } from './growing-array.ts';
export { floatsOfHalves } from './half-precision.ts';
export * from './onnx-session.ts';
export * from './runtime-error.ts';
export * from './split-session.ts';
export { lengthOf } from './tensor-values.ts';
export type { FloatTensor, TensorSpec, TensorValue } from './tensor-values.ts';
