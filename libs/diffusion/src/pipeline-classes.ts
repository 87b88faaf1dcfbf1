/**
 * The `_class_name`s of model_index.json that there is a pipeline for. Apart from `registry.ts`, so that a model's
 * directory can be read, and refused, without loading ONNX Runtime.
 */
export const pipelineClasses = ['StableDiffusionPipeline', 'OnnxStableDiffusionPipeline'] as const;

export type PipelineClass = (typeof pipelineClasses)[number];

/** What of a model's directory a pipeline reads, besides model_index.json and darkroom.json. */
export interface PipelineFolders {
  /** Folders with a graph and its config.json. */
  readonly graphs: readonly string[];
  readonly tokenizers: readonly string[];
  readonly scheduler: string;
}

const stableDiffusion: PipelineFolders = {
  graphs: ['text_encoder', 'unet', 'vae_decoder'],
  tokenizers: ['tokenizer'],
  scheduler: 'scheduler',
};

export const pipelineFolders: Readonly<Record<PipelineClass, PipelineFolders>> = {
  StableDiffusionPipeline: stableDiffusion,
  OnnxStableDiffusionPipeline: stableDiffusion,
};
