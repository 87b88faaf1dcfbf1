/**
 * Description of a model: read from its directory by the worker, published in Redis, served at `/v1/models`, and used
 * for request validation. The card of its kind adds the capabilities.
 */
export interface ModelCard {
  id: string;
  /** Modification time of the model's directory, seconds since the epoch. */
  created: number;
  ownedBy: string;
  /** Kind of work, such as `image`. */
  kind: string;
  /** Pipeline class, such as `StableDiffusionPipeline`. */
  pipeline: string;
  /** Files of its directory that are invalid; the model is served without them. */
  refusedFiles?: readonly RefusedFile[];
  /**
   * Batch invariance: a row yields the same bytes regardless of the other rows in its batch. `reason`: why not.
   * Absent if the kind guarantees it.
   */
  deterministic?: { is: true } | { is: false; reason: string };
}

/** A file that a model is served without. */
export interface RefusedFile {
  /** Relative to the model's directory. */
  readonly file: string;
  readonly reason: string;
}
