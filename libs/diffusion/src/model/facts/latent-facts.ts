/** The latents of a model, as its VAE has them. */
export interface LatentFacts {
  readonly channels: number;
  /** Pixels of the picture for one of the latents, each way. */
  readonly factor: number;
  /** Latents are divided by this, and `shiftFactor` added, before they are decoded. */
  readonly scalingFactor: number;
  readonly shiftFactor: number;
}
