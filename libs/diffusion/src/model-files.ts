/** What can be known of a model without running it: nothing here loads ONNX Runtime. */
export * from './model/describe-model.ts';
export * from './model/model-directory.ts';
export { filesOfLoras } from './loras/model-loras.ts';
export { dtypeFileNames, listDtypes, type PictureDtype, pictureDtypes } from './model/find-model-file.ts';
export { externalFile } from './onnx/check-onnx-file.ts';
export { readOnnxFile } from './onnx/read-onnx-file.ts';
export * from './model/pipeline-classes.ts';
