/**
 * The `_class_name`s of model_index.json that there is a pipeline for. Apart from `registry.ts`, so that a model's
 * directory can be read, and refused, without loading ONNX Runtime.
 */
export const pipelineClasses = ['StableDiffusionPipeline', 'OnnxStableDiffusionPipeline'] as const;

export type PipelineClass = (typeof pipelineClasses)[number];
