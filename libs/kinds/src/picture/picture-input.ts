/** What a picture request is, and what a model of pictures can do. */
import type { ModelCard } from '@darkroom/core';

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
  /** The file says how its picture was made. */
  metadata?: true;
}

/** The seed of picture `index` of a request: seeds count up and wrap at 2³², as torch's CPU generator reads 32 bits. */
export function seedOfPicture(seed: number, index: number): number {
  return (seed + index) % 2 ** 32;
}

/** Rows of one shape can share a step; nothing else about a request splits batches (docs/architecture.md). */
export function pictureShapeKey(input: Pick<PictureInput, 'width' | 'height'>): string {
  return `${input.width}x${input.height}`;
}

/** What a picture request takes of a worker, in pixels through the model: guidance runs it twice for every step. */
export function pictureCost({ width, height, n, numInferenceSteps, guidanceScale }: PictureInput): number {
  return width * height * n * numInferenceSteps * (guidanceScale > 1 ? 2 : 1);
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
}
