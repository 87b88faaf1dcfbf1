export * from './onnx-session.ts';
export * from './runtime-error.ts';
export type * from './tensor-values.ts';
