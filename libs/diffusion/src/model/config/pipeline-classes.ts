import type { ModelPart } from '@darkroom/core';
import type { ImageAttachment } from '@darkroom/kinds';
import type { TokenizerKind } from '../../tokenizer/tokenizer-files.ts';

/**
 * Maps the supported `_class_name`s of model_index.json, as diffusers and Optimum write them, to pipelines.
 * Text-to-image, image-to-image and inpainting classes have the same graphs. Not part of `load-pipeline.ts`, so that a
 * model's directory can be read, and refused, without loading ONNX Runtime.
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

/** Classes written by diffusers' own exporter of 2022, the second for some weeks only. It exported no config.json. */
export const classesOf2022: readonly PipelineClass[] = [
  'OnnxStableDiffusionPipeline',
  'StableDiffusionOnnxPipeline',
  'OnnxStableDiffusionImg2ImgPipeline',
  'OnnxStableDiffusionInpaintPipeline',
];

/** The attachments that a family has published pipelines for; they also need a VAE encoder. */
export const takenByFamilies: Readonly<Record<PipelineFamily, readonly ImageAttachment[]>> = {
  'stable-diffusion': ['image', 'mask'],
  'latent-consistency': ['image'],
  'stable-diffusion-xl': ['image', 'mask'],
  'stable-diffusion-3': ['image', 'mask'],
  cogview4: [],
};

/** Families that have inpainting UNets, which read the mask and the masked image after the latents. */
export const familiesWithInpaintingUnets: readonly PipelineFamily[] = ['stable-diffusion', 'stable-diffusion-xl'];

/** The tokenizer of a text encoder. */
export interface TokenizerFolder {
  readonly folder: string;
  readonly kind: TokenizerKind;
  /** The folder of its text encoder. */
  readonly encoder: string;
}

/** The folders of a model's directory that a pipeline reads. */
export interface PipelineFolders {
  /** Folders with a graph and its config.json, which exports of 2022 lack. */
  readonly graphs: readonly ModelPart[];
  /** The one of them with the UNet or transformer. */
  readonly denoiser: ModelPart;
  readonly tokenizers: readonly TokenizerFolder[];
  /** The folder of a text encoder that models of the class may lack, together with its tokenizer. */
  readonly optionalEncoder?: ModelPart;
}

/** The folders of the first text encoder and tokenizer have no number. */
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
 * Returns the folders of one model. Leaves out the optional encoder if model_index.json (`index`) sets it to null, or
 * its folder does not exist.
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
