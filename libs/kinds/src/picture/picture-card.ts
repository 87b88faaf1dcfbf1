import type { ModelCard } from '@darkroom/core';

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
