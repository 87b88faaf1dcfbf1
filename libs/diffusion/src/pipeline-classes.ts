/**
 * The `_class_name`s of model_index.json that there is a pipeline for, as diffusers and Optimum write them. Apart from
 * `registry.ts`, so that a model's directory can be read, and refused, without loading ONNX Runtime.
 */
export const pipelineClasses = [
  'StableDiffusionPipeline',
  'OnnxStableDiffusionPipeline',
  'ORTStableDiffusionPipeline',
  'LatentConsistencyModelPipeline',
  'ORTLatentConsistencyModelPipeline',
  'StableDiffusionXLPipeline',
  'ORTStableDiffusionXLPipeline',
  'CogView4Pipeline',
] as const;

export type PipelineClass = (typeof pipelineClasses)[number];
export type PipelineFamily = 'stable-diffusion' | 'latent-consistency' | 'stable-diffusion-xl' | 'cogview4';

/** Which pipeline runs a class. */
export const pipelineFamilies: Readonly<Record<PipelineClass, PipelineFamily>> = {
  StableDiffusionPipeline: 'stable-diffusion',
  OnnxStableDiffusionPipeline: 'stable-diffusion',
  ORTStableDiffusionPipeline: 'stable-diffusion',
  LatentConsistencyModelPipeline: 'latent-consistency',
  ORTLatentConsistencyModelPipeline: 'latent-consistency',
  StableDiffusionXLPipeline: 'stable-diffusion-xl',
  ORTStableDiffusionXLPipeline: 'stable-diffusion-xl',
  CogView4Pipeline: 'cogview4',
};

/** The kinds of tokenizers there are: what is cut, padded and marked differs. */
export type TokenizerKind = 'clip' | 'glm';

/** The tokenizer of a text encoder. */
export interface TokenizerFolder {
  readonly folder: string;
  readonly kind: TokenizerKind;
  /** The folder of the text encoder it writes for. */
  readonly encoder: string;
}

/** What of a model's directory a pipeline reads, besides model_index.json and darkroom.json. */
export interface PipelineFolders {
  /** Folders with a graph and its config.json. */
  readonly graphs: readonly string[];
  /** That of them with the UNet or transformer. */
  readonly denoiser: string;
  readonly tokenizers: readonly TokenizerFolder[];
  readonly scheduler: string;
}

const oneEncoder: PipelineFolders = {
  graphs: ['text_encoder', 'unet', 'vae_decoder'],
  denoiser: 'unet',
  tokenizers: [{ folder: 'tokenizer', kind: 'clip', encoder: 'text_encoder' }],
  scheduler: 'scheduler',
};
const twoEncoders: PipelineFolders = {
  graphs: ['text_encoder', 'text_encoder_2', 'unet', 'vae_decoder'],
  denoiser: 'unet',
  tokenizers: [
    { folder: 'tokenizer', kind: 'clip', encoder: 'text_encoder' },
    { folder: 'tokenizer_2', kind: 'clip', encoder: 'text_encoder_2' },
  ],
  scheduler: 'scheduler',
};
const cogview4: PipelineFolders = {
  graphs: ['text_encoder', 'transformer', 'vae_decoder'],
  denoiser: 'transformer',
  tokenizers: [{ folder: 'tokenizer', kind: 'glm', encoder: 'text_encoder' }],
  scheduler: 'scheduler',
};

export const pipelineFolders: Readonly<Record<PipelineClass, PipelineFolders>> = {
  StableDiffusionPipeline: oneEncoder,
  OnnxStableDiffusionPipeline: oneEncoder,
  ORTStableDiffusionPipeline: oneEncoder,
  LatentConsistencyModelPipeline: oneEncoder,
  ORTLatentConsistencyModelPipeline: oneEncoder,
  StableDiffusionXLPipeline: twoEncoders,
  ORTStableDiffusionXLPipeline: twoEncoders,
  CogView4Pipeline: cogview4,
};
