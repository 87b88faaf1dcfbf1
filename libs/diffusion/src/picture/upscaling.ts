import type { RowOutput } from '@darkroom/core';
import { type Upscale, upscaleSteps } from '@darkroom/kinds';
import type { PictureRequest } from './picture-request.ts';

/** How far the enlarging of a picture is, which begins when its steps of the model are done. */
export interface Upscaling {
  readonly upscale: Upscale;
  /** Steps that it takes. */
  readonly pieces: number;
  done: number;
  /** Decoded, and checked where there is a checker; undefined before the first step. */
  picture: RowOutput | undefined;
  /** RGB of the larger picture; empty before the first step. */
  target: Uint8Array;
}

export function beginUpscaling({ width, height, upscale }: PictureRequest): Upscaling | undefined {
  if (upscale === undefined) return undefined;
  const pieces = upscaleSteps({ width, height, upscale });
  return { upscale, pieces, done: 0, picture: undefined, target: new Uint8Array() };
}
