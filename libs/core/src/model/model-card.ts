/** What a model can do: read from its directory by the worker, published in Redis, served at `/v1/models`, checked at the door. */
export interface ModelCard {
  id: string;
  /** Seconds since the epoch: when the model's directory was written. */
  created: number;
  ownedBy: string;
  /** The pipeline that runs it, such as `StableDiffusionPipeline`. */
  pipeline: string;
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
