/** What the configuration of a model's denoiser, its UNet or transformer, says that a pipeline goes by. */
export interface DenoiserFacts {
  /** Relative to the model's directory, for messages. */
  readonly configFile: string;
  readonly inChannels: number;
  /** Height and width of the latents that the model was made for. */
  readonly sampleSize: readonly [number, number];
  /** Both sides of the latents must be multiples of this. */
  readonly multiple: number;
  /** What they are at most; absent where there is no such limit. */
  readonly maxSide?: number;
  /** Width of what it reads of the text for each token. */
  readonly embeddingWidth: number;
  /** Of the embedding of the guidance, where it is told that; else absent. */
  readonly guidanceWidth?: number | undefined;
}
