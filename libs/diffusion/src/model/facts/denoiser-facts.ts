import { misfitError } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

/** What the configuration of a model's denoiser, its UNet or transformer, says that a pipeline goes by. */
export interface DenoiserFacts {
  /** Relative to the model's directory, for messages. */
  readonly configFile: string;
  readonly inChannels: number;
  /** Height and width of the latents that the model was made for. */
  readonly sampleSize: readonly [number, number];
  /** Both sides of the latents must be multiples of this. */
  readonly multiple: number;
  /** What they are at most; absent where there is no such limit. */
  readonly maxSide?: number;
  /** Width of what it reads of the text for each token. */
  readonly embeddingWidth: number;
  /** Of the embedding of the guidance, where it is told that; else absent. */
  readonly guidanceWidth?: number | undefined;
}

/**
 * Checks that all encoders read equally many tokens, as they must where what they give lies side by side.
 *
 * @throws DarkroomError `model_unsupported` naming the tokenizer's file that differs from the first.
 */
export function checkSameTokens(textEncoders: readonly TextEncoderFiles[]): void {
  const { maxTokens } = textEncoders[0]!.tokenizer;
  for (const { tokenizer } of textEncoders) {
    if (tokenizer.maxTokens === maxTokens) continue;
    const expected = `${maxTokens}, that of tokenizer/tokenizer_config.json`;
    const file = `${tokenizer.folder}/tokenizer_config.json`;
    throw misfitError(file, 'model_max_length', tokenizer.maxTokens, expected);
  }
}
