/** What a picture request is, and what a model of pictures can do. */
import type { ModelCard } from '@darkroom/core';
import type { Upscale } from './upscale.ts';

export const outputFormats = ['png', 'jpeg', 'webp'] as const;
export type OutputFormat = (typeof outputFormats)[number];

export const contentTypes: Readonly<Record<OutputFormat, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
};

/** A picture request after validation, with every default filled in: all that an engine needs to make the same bytes again. */
export interface PictureInput {
  prompt: string;
  negativePrompt: string;
  /** Pixels. */
  width: number;
  height: number;
  /** Pictures, 1–10. Picture `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  numInferenceSteps: number;
  /** 1 and less mean no guidance: the unconditional half is not computed. */
  guidanceScale: number;
  /** 0 (not at all) to 1: how far the guided output is brought back to the spread of the unguided. */
  guidanceRescale: number;
  /** 0 to 2³²−1. */
  seed: number;
  scheduler: string;
  outputFormat: OutputFormat;
  /** 0–100; quality for jpeg and webp, ignored for png. */
  outputCompression: number;
  /** A preview every so many steps; 0 for none. */
  previewEvery: number;
  /** The request has a picture that it starts from: its attachment `image`, an RGB PNG of the size above. Absent without one. */
  image?: true;
  /** It has a mask: its attachment `mask`, a grey PNG of the same size; what is 128 and more is painted anew. */
  mask?: true;
  /** 0 (the picture stays nearly as it is) to 1 (little is left of it). With an image always there, without one never. */
  strength?: number;
  /** Adapters of the model, and how much of each is added; absent when none. */
  loras?: readonly { readonly id: string; readonly scale: number }[];
  /** The file says how its picture was made. */
  metadata?: true;
  /** How many times as large the picture becomes each way, by the model's upscaler; absent where it stays as it is. */
  upscale?: Upscale;
}

/** What a request may bring beside its text. */
export const pictureAttachments = ['image', 'mask'] as const;
export type PictureAttachment = (typeof pictureAttachments)[number];

/** As of diffusers' pipelines that start from a picture, and of those that paint a part of one anew. */
export function defaultStrength(hasMask: boolean): number {
  return hasMask ? 1 : 0.8;
}

/** The seed of picture `index` of a request: seeds count up and wrap at 2³², as torch's CPU generator reads 32 bits. */
export function seedOfPicture(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}

/** Rows of one shape can share a step; nothing else about a request splits batches (docs/architecture.md). */
export function pictureShapeKey(input: Pick<PictureInput, 'width' | 'height'>): string {
  return `${input.width}x${input.height}`;
}

/**
 * What a picture request takes of a worker, in pixels through the model: guidance runs it twice for every step. An upscaler counts by
 * the pixels that come out of it.
 */
export function pictureCost(input: PictureInput): number {
  const { width, height, n, guidanceScale, upscale } = input;
  const enlarging = upscale === undefined ? 0 : upscale ** 2;
  return width * height * n * (pictureSteps(input) * (guidanceScale > 1 ? 2 : 1) + enlarging);
}

/**
 * The most steps that one picture takes: the share of them that `strength` leaves, at least one. `lcm` takes all of them, of
 * a part of its timesteps, in a model of the family it comes from.
 * Source: diffusers `get_timesteps` of the pipelines that start from a picture; that of Stable Diffusion 3 rounds up.
 */
export function pictureSteps({
  numInferenceSteps,
  strength = 1,
  scheduler,
}: Pick<PictureInput, 'numInferenceSteps' | 'strength' | 'scheduler'>): number {
  if (scheduler === 'lcm') return numInferenceSteps;
  return Math.max(Math.ceil(numInferenceSteps * strength), 1);
}

/** What a model of pictures can do. */
export interface PictureCard extends ModelCard {
  kind: 'picture';
  sizes: {
    /** Pixels; both sides are multiples of this. */
    multiple: number;
    /** Pixels, each side, inclusive. */
    min: number;
    max: number;
    /** Pixels; what `auto` means. */
    default: { width: number; height: number };
  };
  steps: { min: number; max: number; default: number };
  guidance: { min: number; max: number; default: number };
  schedulers: readonly string[];
  defaultScheduler: string;
  /** Tokens of the prompt that the model reads, start and end marks included; what is longer is cut. */
  maxPromptTokens: number;
  /** What of a picture it can start from; absent where it draws from nothing only. A mask needs an image. */
  takes?: readonly PictureAttachment[];
  /** What `upscale` may be; absent where the model has no upscaler. */
  upscales?: readonly Upscale[];
  /** Finished pictures are looked at by the model's safety checker, and one it finds fault with is made black, or refused. */
  safetyChecker?: 'black' | 'refuse';
  /** Adapters that requests may name, by id; absent where there are none. `rank`: the highest of its layers. */
  loras?: readonly { readonly id: string; readonly rank: number }[];
}

/** Of all adapters of a request together: engines keep a row's bytes up to here, whatever the ranks of its neighbours. */
export const maxLoraRank = 128;
