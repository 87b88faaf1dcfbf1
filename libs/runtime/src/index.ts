export * from './onnx-session.ts';
export * from './runtime-error.ts';
