export type { NodeCounts } from './node-counter.ts';
export * from './onnx-session.ts';
export * from './runtime-error.ts';
