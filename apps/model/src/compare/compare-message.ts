/** What the process that makes pictures says to the one that compares them. */
import type { LoadModelOptions } from '@darkroom/diffusion';

export interface CompareRequest {
  readonly model: LoadModelOptions;
  readonly prompts: readonly string[];
  /** The model's own by default. */
  readonly steps: number | undefined;
  /** Pictures that are made at once. */
  readonly rows: number;
}

export type CompareMessage =
  | { readonly type: 'picture'; readonly index: number; readonly data: Uint8Array }
  | {
      readonly type: 'done';
      /** Of all pictures together. */
      readonly ms: number;
      readonly peakBytes: number;
      /** Pictures of a batch that are other bytes than alone, of how many. */
      readonly changed: number;
      readonly tried: number;
    };
