/** Reads models' files without running them: nothing here loads ONNX Runtime. */
export * from './model/describe-model.ts';
export * from './model/model-directory.ts';
export { filesOfLoras } from './loras/model-loras.ts';
export { dtypeFileNames, listDtypes, type ImageDtype, imageDtypes } from './model/find-model-file.ts';
export { externalFile } from './onnx/check-onnx-file.ts';
export { readOnnxFile } from './onnx/read-onnx-file.ts';
export { exampleImagePattern, maxExampleBytes } from './model/darkroom-json.ts';
export * from './model/config/pipeline-classes.ts';
