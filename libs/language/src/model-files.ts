/** What can be known of a model without running it: nothing here loads ONNX Runtime. */
export * from './model/text-model-config.ts';
export * from './model/text-model-directory.ts';
