import type { ModelPart } from '@darkroom/core';

/**
 * Which pipeline runs a class: the `_class_name`s of model_index.json that there is a pipeline for, as diffusers and Optimum
 * write them. Apart from `load-pipeline.ts`, so that a model's directory can be read, and refused, without loading ONNX Runtime.
 */
export const pipelineFamilies = {
  StableDiffusionPipeline: 'stable-diffusion',
  OnnxStableDiffusionPipeline: 'stable-diffusion',
  StableDiffusionOnnxPipeline: 'stable-diffusion',
  ORTStableDiffusionPipeline: 'stable-diffusion',
  LatentConsistencyModelPipeline: 'latent-consistency',
  ORTLatentConsistencyModelPipeline: 'latent-consistency',
  StableDiffusionXLPipeline: 'stable-diffusion-xl',
  ORTStableDiffusionXLPipeline: 'stable-diffusion-xl',
  StableDiffusion3Pipeline: 'stable-diffusion-3',
  ORTStableDiffusion3Pipeline: 'stable-diffusion-3',
  CogView4Pipeline: 'cogview4',
} as const;

export type PipelineClass = keyof typeof pipelineFamilies;
export type PipelineFamily = (typeof pipelineFamilies)[PipelineClass];

export const pipelineClasses = Object.keys(pipelineFamilies) as PipelineClass[];

/** Those that diffusers' own exporter of 2022 wrote, the second one for some weeks only. It put no config.json beside its graphs. */
export const classesOf2022: readonly PipelineClass[] = ['OnnxStableDiffusionPipeline', 'StableDiffusionOnnxPipeline'];

/** The kinds of tokenizers there are: what is cut, padded and marked differs. */
export type TokenizerKind = 'clip' | 't5' | 'glm';

/** The tokenizer of a text encoder. */
export interface TokenizerFolder {
  readonly folder: string;
  readonly kind: TokenizerKind;
  /** The folder of the text encoder it writes for. */
  readonly encoder: string;
}

/** What of a model's directory a pipeline reads, besides model_index.json and darkroom.json. */
export interface PipelineFolders {
  /** Folders with a graph and its config.json, which exports of 2022 have not. */
  readonly graphs: readonly ModelPart[];
  /** That of them with the UNet or transformer. */
  readonly denoiser: ModelPart;
  readonly tokenizers: readonly TokenizerFolder[];
  /** The folder of a text encoder that models of the class may come without, and then without its tokenizer. */
  readonly optionalEncoder?: ModelPart;
}

/** The first text encoder and its tokenizer have no number. */
function foldersWith(denoiser: ModelPart, ...kinds: readonly TokenizerKind[]): PipelineFolders {
  const tokenizers = kinds.map((kind, at) => {
    const suffix = at === 0 ? '' : `_${at + 1}`;
    return { folder: `tokenizer${suffix}`, kind, encoder: `text_encoder${suffix}` as ModelPart };
  });
  return { graphs: [...tokenizers.map(({ encoder }) => encoder), denoiser, 'vae_decoder'], denoiser, tokenizers };
}

export const pipelineFolders: Readonly<Record<PipelineFamily, PipelineFolders>> = {
  'stable-diffusion': foldersWith('unet', 'clip'),
  'latent-consistency': foldersWith('unet', 'clip'),
  'stable-diffusion-xl': foldersWith('unet', 'clip', 'clip'),
  'stable-diffusion-3': { ...foldersWith('transformer', 'clip', 'clip', 't5'), optionalEncoder: 'text_encoder_3' },
  cogview4: foldersWith('transformer', 'glm'),
};

/**
 * What is read of one model: an optional encoder that model_index.json, which is `index`, says is none, or that has no
 * folder, is left out.
 */
export function foldersOf(
  pipelineClass: PipelineClass,
  { index, hasOptionalEncoder }: { index: Readonly<Record<string, unknown>>; hasOptionalEncoder: boolean },
): PipelineFolders {
  const folders = pipelineFolders[pipelineFamilies[pipelineClass]];
  const { graphs, tokenizers, optionalEncoder } = folders;
  if (optionalEncoder === undefined) return folders;
  const named = index[optionalEncoder];
  const isNone = Array.isArray(named) && named.every((part) => part === null);
  if (hasOptionalEncoder && !isNone) return folders;
  return {
    ...folders,
    graphs: graphs.filter((graph) => graph !== optionalEncoder),
    tokenizers: tokenizers.filter(({ encoder }) => encoder !== optionalEncoder),
  };
}
