import type { RowOutput } from '@darkroom/core';
import { encodePicture, encodePreview, withMetadata } from '@darkroom/imaging';
import { type PictureInput, picture, recipeOf } from '@darkroom/kinds';

/** From what the engine gives out to what clients get. */
export interface OutputEncoder {
  encodeOutput(input: unknown, output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
  encodePreview(output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
}

/** Of pixels. */
export function ofPictures(pngLevel: number): OutputEncoder {
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
export function encoderOf(kind: string, { pngLevel, modelId }: { pngLevel: number; modelId: string }): OutputEncoder {
  return kind === picture.id ? withRecipes(ofPictures(pngLevel), modelId) : asTheyAre;
}

/** Pictures say how they were made, where they were asked to. */
export function withRecipes(encoder: OutputEncoder, model: string): OutputEncoder {
  return {
    async encodeOutput(given, output) {
      const encoded = await encoder.encodeOutput(given, output);
      // Of other kinds none has it.
      const input = given as PictureInput;
      if (input.metadata !== true) return encoded;
      return withMetadata(encoded, recipeOf(model, input, Number(output.facts['seed'] ?? input.seed)));
    },
    encodePreview: (output) => encoder.encodePreview(output),
  };
}
