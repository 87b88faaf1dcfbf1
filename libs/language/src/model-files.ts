/** Model metadata without inference: nothing here loads ONNX Runtime. */
export * from './model/text-model-config.ts';
export * from './model/text-model-directory.ts';
