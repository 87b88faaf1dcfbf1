/** What the process that loads a model says to the one that asked. */
import type { LoadModelOptions } from '@darkroom/diffusion';

export interface CheckRequest {
  readonly model: LoadModelOptions;
}

export type CheckMessage =
  /** How long a part of the work took, and the most memory that the process has had so far. */
  | {
      readonly type: 'done';
      readonly what: 'load' | 'step' | 'decode';
      readonly ms: number;
      readonly peakBytes: number;
    }
  | { readonly type: 'failed'; readonly message: string };
