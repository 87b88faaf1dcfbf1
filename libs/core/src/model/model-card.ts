/**
 * What a model is: read from its directory by the worker, published in Redis, served at `/v1/models`, checked at the
 * door. What it can do stands beside this, in the card of its kind.
 */
export interface ModelCard {
  id: string;
  /** Seconds since the epoch: when the model's directory was written. */
  created: number;
  ownedBy: string;
  /** The kind of work it does, such as `picture`. */
  kind: string;
  /** The pipeline that runs it, such as `StableDiffusionPipeline`. */
  pipeline: string;
}
