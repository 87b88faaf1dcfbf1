import { misfitError } from '@darkroom/runtime/model-file';
import type { TextEncoders } from './text-encoder-files.ts';

/** The fields of a denoiser's configuration (UNet or transformer) that a pipeline needs. */
export interface DenoiserConfig {
  /** Relative to the model's directory, for error messages. */
  readonly configFile: string;
  readonly inChannels: number;
  /** Height and width of the latents that the model was trained for. */
  readonly sampleSize: readonly [number, number];
  /** Both sides of the latents must be multiples of this. */
  readonly multiple: number;
  /** Maximum side of the latents; absent if there is no limit. */
  readonly maxSide?: number;
  /** Width of the text embedding per token. */
  readonly embeddingWidth: number;
  /** Width of the guidance embedding; absent if the denoiser takes no guidance. */
  readonly guidanceWidth?: number;
}

/**
 * Checks that all text encoders read the same number of tokens, as their outputs are concatenated per token.
 *
 * @throws DarkroomError `model_unsupported` naming the tokenizer file that differs from the first.
 */
export function checkSameTokens([first, ...others]: TextEncoders): void {
  const { maxTokens } = first.tokenizer;
  for (const { tokenizer } of others) {
    if (tokenizer.maxTokens === maxTokens) continue;
    const expected = `${maxTokens}, that of tokenizer/tokenizer_config.json`;
    const file = `${tokenizer.folder}/tokenizer_config.json`;
    throw misfitError(file, 'model_max_length', tokenizer.maxTokens, expected);
  }
}
