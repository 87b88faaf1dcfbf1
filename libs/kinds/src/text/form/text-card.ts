import type { ModelCard } from '@darkroom/core';

/** Generation mode: one token after the other, or a block of masked tokens that is denoised in place. */
export type TextMode = 'autoregressive' | 'block_diffusion';

/** Capabilities of a text model. */
export interface TextCard extends ModelCard {
  kind: 'text';
  mode: TextMode;
  /** Maximum tokens of prompt and output together: the context length, or less if the worker has not enough memory. */
  maxModelTokens: number;
  /** Token ids are below this. The codec may have more tokens that the model does not read, such as image tokens. */
  vocabularySize: number;
  /** Name of the tokenizer document in the store: the SHA-256 of its bytes, in hex. */
  codec: string;
  /** False if the model has no chat template and takes prompts only. */
  hasChatTemplate: boolean;
  /** True if the chat template supports tools. */
  hasTools: boolean;
  /** Defaults for fields that a request omits, from generation_config.json. */
  defaults: { maxTokens: number; temperature: number; topP: number; topK: number };
  /** Block diffusion only: tokens per block, and the probability (0–1) from which a token is kept. */
  block?: { size: number; confidenceThreshold: number };
  deterministic: NonNullable<ModelCard['deterministic']>;
}

/**
 * Returns the number of tokens that fit the context after a prompt; for block diffusion, of full blocks. 0 or less: the
 * prompt is too long.
 */
export function remainingTokens(
  { maxModelTokens, block }: Pick<TextCard, 'maxModelTokens' | 'block'>,
  promptTokens: number,
) {
  const left = maxModelTokens - promptTokens;
  return block === undefined ? left : left - (left % block.size);
}
