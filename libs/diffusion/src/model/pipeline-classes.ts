import type { ModelPart } from '@darkroom/core';
import type { PictureAttachment } from '@darkroom/kinds';

/**
 * Which pipeline runs a class: the `_class_name`s of model_index.json that there is a pipeline for, as diffusers and Optimum
 * write them. Which of its pipelines a model was saved with makes no difference: the graphs are the same. Apart from `load-pipeline.ts`, so that a model's directory can be read, and refused, without loading ONNX Runtime.
 */
export const pipelineFamilies = {
  StableDiffusionPipeline: 'stable-diffusion',
  OnnxStableDiffusionPipeline: 'stable-diffusion',
  StableDiffusionOnnxPipeline: 'stable-diffusion',
  ORTStableDiffusionPipeline: 'stable-diffusion',
  StableDiffusionImg2ImgPipeline: 'stable-diffusion',
  StableDiffusionInpaintPipeline: 'stable-diffusion',
  OnnxStableDiffusionImg2ImgPipeline: 'stable-diffusion',
  OnnxStableDiffusionInpaintPipeline: 'stable-diffusion',
  ORTStableDiffusionImg2ImgPipeline: 'stable-diffusion',
  ORTStableDiffusionInpaintPipeline: 'stable-diffusion',
  LatentConsistencyModelPipeline: 'latent-consistency',
  ORTLatentConsistencyModelPipeline: 'latent-consistency',
  LatentConsistencyModelImg2ImgPipeline: 'latent-consistency',
  ORTLatentConsistencyModelImg2ImgPipeline: 'latent-consistency',
  StableDiffusionXLPipeline: 'stable-diffusion-xl',
  ORTStableDiffusionXLPipeline: 'stable-diffusion-xl',
  StableDiffusionXLImg2ImgPipeline: 'stable-diffusion-xl',
  StableDiffusionXLInpaintPipeline: 'stable-diffusion-xl',
  ORTStableDiffusionXLImg2ImgPipeline: 'stable-diffusion-xl',
  ORTStableDiffusionXLInpaintPipeline: 'stable-diffusion-xl',
  StableDiffusion3Pipeline: 'stable-diffusion-3',
  ORTStableDiffusion3Pipeline: 'stable-diffusion-3',
  StableDiffusion3Img2ImgPipeline: 'stable-diffusion-3',
  StableDiffusion3InpaintPipeline: 'stable-diffusion-3',
  ORTStableDiffusion3Img2ImgPipeline: 'stable-diffusion-3',
  ORTStableDiffusion3InpaintPipeline: 'stable-diffusion-3',
  CogView4Pipeline: 'cogview4',
} as const;

export type PipelineClass = keyof typeof pipelineFamilies;
export type PipelineFamily = (typeof pipelineFamilies)[PipelineClass];

export const pipelineClasses = Object.keys(pipelineFamilies) as PipelineClass[];

/** Those that diffusers' own exporter of 2022 wrote, the second one for some weeks only. It put no config.json beside its graphs. */
export const classesOf2022: readonly PipelineClass[] = [
  'OnnxStableDiffusionPipeline',
  'StableDiffusionOnnxPipeline',
  'OnnxStableDiffusionImg2ImgPipeline',
  'OnnxStableDiffusionInpaintPipeline',
];

/** What of a picture a family has a published pipeline for, where the model has an encoder. */
export const takenByFamilies: Readonly<Record<PipelineFamily, readonly PictureAttachment[]>> = {
  'stable-diffusion': ['image', 'mask'],
  'latent-consistency': ['image'],
  'stable-diffusion-xl': ['image', 'mask'],
  'stable-diffusion-3': ['image', 'mask'],
  cogview4: [],
};

/** Families with UNets that were made for inpainting: these read the mask and the masked picture after the latents. */
export const familiesWithInpaintingUnets: readonly PipelineFamily[] = ['stable-diffusion', 'stable-diffusion-xl'];

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
