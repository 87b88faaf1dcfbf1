import type { Device } from '@darkroom/core';

/** Where and how a pipeline's graphs run. */
export interface LoadPipelineOptions {
  /** In the order of preference; `cpu` if absent. */
  devices?: readonly Device[];
  /** Only the first of them will do. */
  isStrictAboutDevice?: boolean;
  /** Threads of one model call. */
  threads?: number;
  /** Text encoders are in memory only while prompts are encoded. */
  hasLowMemory?: boolean;
  /** Pictures of more pixels than a square of this side are decoded in pieces; none are if absent. */
  vaeTileSize?: number;
}
