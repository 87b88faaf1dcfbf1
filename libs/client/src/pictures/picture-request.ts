import type { RequestOptions } from '../request-options.ts';

/** How pictures are encoded. */
export type OutputFormat = 'png' | 'jpeg' | 'webp';

/** A small picture of the work so far every so many steps (1 to 1000), or none. */
export type PreviewRequest = 'off' | { every: number };

/** The body of `POST /v1/predict` for pictures. Limits named "the model's" are in `/v1/models`. */
export interface PictureRequest extends RequestOptions {
  /** What to draw: 1 to 4000 characters. */
  prompt: string;
  /** What to stay away from: up to 4000 characters; without effect at guidance 1. Default: none. */
  negative_prompt?: string;
  /** `WIDTHxHEIGHT` in pixels within the model's limits, or `auto`. Default: the model's own. */
  size?: string;
  /** Pictures, 1 to 10; picture `i` has the seed `seed + i`. Default: 1. */
  n?: number;
  /** Within the model's limits, at most 1000. Default: the model's. */
  num_inference_steps?: number;
  /** How closely to follow the prompt, within the model's limits; 1 is without guidance and costs half. */
  guidance_scale?: number;
  /** 0 to 1: how far guidance is kept from overexposing the picture. Default: 0. */
  guidance_rescale?: number;
  /** 0 to 2³²−1; the same seed and parameters give the same bytes (on CPU). Default: drawn, and in the result. */
  seed?: number;
  /** One of the model's `schedulers`. Default: the model's. */
  scheduler?: string;
  /** Default: `png`. */
  output_format?: OutputFormat;
  /** Quality of jpeg and webp, 0 to 100. Default: 100. */
  output_compression?: number;
  /** `inline` puts the pictures into an answer that waits for them. Default: `url`. */
  output?: 'url' | 'inline';
  /** Default: `{ every: 5 }`. */
  preview?: PreviewRequest;
  /**
   * The picture to begin with, for models whose `takes` has it: a file, a data URL, an https URL that the server fetches, or the `url` of
   * a picture of yours on the server. With `size: 'auto'` it is its own size that is drawn.
   */
  image?: string | Blob;
  /** Where to paint anew: white there, black where `image` stays, of the size of `image`. */
  mask?: string | Blob;
  /** 0 to 1: how far to go from `image`. Default: 0.8, or 1 with a mask. */
  strength?: number;
  /** Whether the file says how its picture was made, for `readMetadata` and other tools. Default: the server's, mostly `false`. */
  metadata?: boolean;
  /** How many times as large the picture becomes each way, by an upscaler of the model (`upscales`). Default: not at all. */
  upscale?: 2 | 4;
  /** Adapters of the model's `loras`, at most 8, and how much of each is added: −4 to 4, 1 by default. Default: none. */
  loras?: { id: string; scale?: number }[];
}
