/** Validated input of image requests, and capabilities of image models. */
import type { ModelCard } from '@darkroom/core';
import type { Upscale } from './upscale.ts';
import type { PromptSyntax } from './webui-prompt.ts';

export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const contentTypes: Readonly<Record<OutputFormat, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
};

/** Validated input of an image request with every default filled in: an engine reproduces the same bytes from it. */
export interface ImageInput {
  prompt: string;
  negativePrompt: string;
  /** Set if both prompts have weights (see `parsePromptWeights`); absent: they are plain text. */
  promptSyntax?: 'webui';
  /** Pixels. */
  width: number;
  height: number;
  /** Number of images, 1–10. Image `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  numInferenceSteps: number;
  /** 1 or less disables guidance: the unconditional half is not computed. */
  guidanceScale: number;
  /** 0 (off) to 1: how far the guided output is rescaled to the standard deviation of the conditional output. */
  guidanceRescale: number;
  /** 0 to 2³²−1. */
  seed: number;
  scheduler: string;
  outputFormat: OutputFormat;
  /** 0–100; quality for jpeg and webp, ignored for png. */
  outputCompression: number;
  /** Steps between previews; 0 for none. */
  previewEvery: number;
  /** Set if the request has an input image: the attachment `image`, an RGB PNG of `width` × `height`. */
  image?: true;
  /** Set if the request has a mask: the attachment `mask`, a grayscale PNG of the same size; repaints pixels ≥ 128. */
  mask?: true;
  /** 0 (nearly unchanged) to 1 (little is left of the input image). Present if and only if there is an input image. */
  strength?: number;
  /** Adapters with their scales; absent without any. */
  loras?: readonly { readonly id: string; readonly scale: number }[];
  /** Set if files embed the generation parameters. */
  metadata?: true;
  /** Factor by which the model's upscaler enlarges each side; absent without upscaling. */
  upscale?: Upscale;
}

/** Names of files that an image request may have. */
export const imageAttachments = ['image', 'mask'] as const;
export type ImageAttachment = (typeof imageAttachments)[number];

/** Returns the default strength of diffusers' image-to-image or inpainting pipelines. */
export function defaultStrength(hasMask: boolean): number {
  return hasMask ? 1 : 0.8;
}

/** Returns the seed of image `index`: request seed + index, modulo 2³² (torch's CPU generator reads 32 bits). */
export function seedOfImage(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}

/** Returns the shape key: rows of equal size can share a step; nothing else splits batches (docs/architecture.md). */
export function imageShapeKey(input: Pick<ImageInput, 'width' | 'height'>): string {
  return `${input.width}x${input.height}`;
}

/**
 * Returns the cost in pixels through the model: guidance doubles each step. An upscaler counts with its output pixels.
 */
export function imageCost(input: ImageInput): number {
  const { width, height, n, guidanceScale, upscale } = input;
  const enlarging = upscale === undefined ? 0 : upscale ** 2;
  return width * height * n * (imageSteps(input) * (guidanceScale > 1 ? 2 : 1) + enlarging);
}

/**
 * Returns the maximum steps of one image: the share that `strength` leaves, at least one. `lcm` always runs all steps,
 * over a part of its timesteps. Source: `get_timesteps` of diffusers' image-to-image pipelines; Stable Diffusion 3's
 * rounds up.
 */
export function imageSteps({
  numInferenceSteps,
  strength = 1,
  scheduler,
}: Pick<ImageInput, 'numInferenceSteps' | 'strength' | 'scheduler'>): number {
  if (scheduler === 'lcm') return numInferenceSteps;
  return Math.max(Math.ceil(numInferenceSteps * strength), 1);
}

/** Capabilities of an image model. */
export interface ImageCard extends ModelCard {
  kind: 'image';
  sizes: {
    /** Pixels; both sides are multiples of this. */
    multiple: number;
    /** Pixels, each side, inclusive. */
    min: number;
    max: number;
    /** Pixels; the size for `auto`. */
    default: { width: number; height: number };
  };
  steps: { min: number; max: number; default: number };
  guidance: { min: number; max: number; default: number };
  schedulers: readonly string[];
  defaultScheduler: string;
  /** Maximum prompt tokens, including start and end tokens; longer prompts are cut. */
  maxPromptTokens: number;
  /** Supported values of `prompt_syntax`; absent: plain only. */
  promptSyntaxes?: readonly PromptSyntax[];
  /** Supported input files; absent if the model is text-to-image only. A mask needs an image. */
  takes?: readonly ImageAttachment[];
  /** Input files that each request must have; absent without any. */
  needs?: readonly ImageAttachment[];
  /** Supported values of `upscale`; absent if the model has no upscaler. */
  upscales?: readonly Upscale[];
  /** Effect of the model's safety checker on a flagged image: made black, or the request fails. Absent without one. */
  safetyChecker?: 'black' | 'refuse';
  /** Request fields that the model does not support, because another server runs it; absent if it supports all. */
  unsupported?: readonly ImageOption[];
  /** Adapters that requests may use; absent without any. `rank`: the highest rank of an adapter's layers. */
  loras?: readonly LoraCard[];
  /** Prompts that the model draws well with its defaults; absent without any. `image`: a thumbnail as a data URL. */
  examples?: readonly { readonly prompt: string; readonly seed: number; readonly image: string }[];
}

/** Request fields that servers of other vendors may lack. */
export const imageOptions = ['negative_prompt', 'seed', 'guidance_rescale', 'strength'] as const;
export type ImageOption = (typeof imageOptions)[number];

/** An adapter of a model. */
export interface LoraCard {
  readonly id: string;
  readonly rank: number;
  /** File name, if it cannot be the id. */
  readonly name?: string;
  /** Text encoders whose part of the adapter is ignored, because their graphs do not support adapters. */
  readonly leftOut?: readonly string[];
}

/** Maximum sum of the ranks of a request's adapters. Up to it, a row's bytes do not depend on the other rows' ranks. */
export const maxLoraRank = 128;
