/** What the process that loads a model says to the one that asked. */
import type { PipelineComponent } from '@darkroom/core';
import type { LoadModelOptions } from '@darkroom/diffusion';

export interface CheckRequest {
  readonly model: LoadModelOptions;
}

/** The parts of the work, in their order. */
export const checkParts = ['load', 'encode', 'step', 'decode'] as const;
export type CheckPart = (typeof checkParts)[number];

/** How long a part of the work took, the memory that the process has after it, and the most that it has had so far. */
export interface CheckMeasurement {
  readonly ms: number;
  readonly bytes: number;
  readonly peakBytes: number;
}

export type CheckMessage =
  | ({ readonly type: 'done'; readonly what: CheckPart } & CheckMeasurement)
  | { readonly type: 'loaded'; readonly components: readonly PipelineComponent[] };
