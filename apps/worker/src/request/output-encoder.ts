import type { RowOutput } from '@darkroom/core';
import { encodeImage, encodePreview, withMetadata } from '@darkroom/imaging';
import { type ImageInput, imageKind, recipeOf } from '@darkroom/kinds';

/** Converts engine outputs to the files that clients get. */
export interface OutputEncoder {
  encodeOutput(input: unknown, output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
  encodePreview(output: RowOutput): Promise<{ data: Uint8Array; contentType: string }>;
}

/** Encodes pixels as images. */
export const imageEncoder: OutputEncoder = {
  // The API validated the input with this type, and the pipeline has checked it.
  encodeOutput: (input, output) => encodeImage(output, input as ImageInput),
  encodePreview,
};

/** Passes outputs through: texts are UTF-8 already, and outputs of upstreams and modules have a content type. */
export const passThrough: OutputEncoder = {
  encodeOutput: (_input, output) => Promise.resolve(withContentType(output)),
  encodePreview: (output) => Promise.resolve(withContentType(output)),
};

function withContentType({ data, contentType = 'text/plain; charset=utf-8' }: RowOutput) {
  return { data, contentType };
}

/** Returns the encoder for outputs of the built-in engine. */
export function encoderOf(kind: string, modelId: string): OutputEncoder {
  return kind === imageKind.id ? addGenerationMetadata(imageEncoder, modelId) : passThrough;
}

/** Adds generation metadata to images whose input requests it. */
export function addGenerationMetadata(encoder: OutputEncoder, model: string): OutputEncoder {
  return {
    async encodeOutput(given, output) {
      const encoded = await encoder.encodeOutput(given, output);
      // Inputs of other kinds have no `metadata` field.
      const input = given as ImageInput;
      if (input.metadata !== true) return encoded;
      return withMetadata(encoded, recipeOf(model, input, Number(output.facts['seed'] ?? input.seed)));
    },
    encodePreview: (output) => encoder.encodePreview(output),
  };
}
