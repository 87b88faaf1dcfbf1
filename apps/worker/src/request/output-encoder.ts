import type { RowOutput } from '@darkroom/core';
import { encodePicture, encodePreview } from '@darkroom/imaging';
import { type PictureInput, picture } from '@darkroom/kinds';

/** From what the engine gives out to what clients get. */
export interface OutputEncoder {
  encodeOutput(input: unknown, output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
  encodePreview(output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
}

function ofPictures(pngLevel: number): OutputEncoder {
  return {
    // The API's schema is what wrote it, and the pipeline has checked it by now.
    encodeOutput: (input, output) => encodePicture(output, { ...(input as PictureInput), pngLevel }),
    encodePreview,
  };
}

/** Texts are UTF-8 as they come, and what others have made says what it is. */
export const asTheyAre: OutputEncoder = {
  encodeOutput: (_input, output) => Promise.resolve(asItIs(output)),
  encodePreview: (output) => Promise.resolve(asItIs(output)),
};

function asItIs({ data, contentType = 'text/plain; charset=utf-8' }: RowOutput) {
  return { data, contentType };
}

/** How outputs of a kind are written that an engine of ours makes. */
export function encoderOf(kind: string, { pngLevel }: { pngLevel: number }): OutputEncoder {
  return kind === picture.id ? ofPictures(pngLevel) : asTheyAre;
}
