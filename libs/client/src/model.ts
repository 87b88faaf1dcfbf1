/** A model of `/v1/models`, and what it can do. */
export interface Model {
  id: string;
  object: 'model';
  /** Seconds since 1970. */
  created: number;
  owned_by: string;
  /** Whether a live worker serves it right now. */
  is_possible: boolean;
  /** An operator has paused it: requests wait. */
  is_paused: boolean;
  /** Such as `StableDiffusionPipeline`. */
  pipeline: string;
  /** Pixels: width and height are multiples of `multiple`, from `min` to `max`. */
  sizes: { multiple: number; min: number; max: number };
  steps: { min: number; max: number };
  guidance: { min: number; max: number };
  /** What `scheduler` takes. */
  schedulers: string[];
  /** What is longer is cut. */
  max_prompt_tokens: number;
  defaults: { size: string; num_inference_steps: number; guidance_scale: number; scheduler: string };
}
