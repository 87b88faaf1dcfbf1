import { modelFileError } from '../model-file.ts';
import type { TextEncoderFiles } from './text-encoder-files.ts';

/**
 * Checks that all encoders read equally many tokens, as they must where what they give lies side by side.
 *
 * @throws DarkroomError `model_unsupported` naming the tokenizer's file that differs from the first.
 */
export function checkSameTokens([first, ...others]: readonly TextEncoderFiles[]): void {
  const { maxTokens } = first!.tokenizer;
  const other = others.find(({ tokenizer }) => tokenizer.maxTokens !== maxTokens);
  if (other === undefined) return;
  const { folder, maxTokens: otherTokens } = other.tokenizer;
  const problem = `model_max_length: is ${otherTokens}, expected ${maxTokens}, that of tokenizer/tokenizer_config.json`;
  throw modelFileError(`${folder}/tokenizer_config.json`, problem);
}
