import type { ModelCard } from '@darkroom/core';

/** One token after the other, or a block of masked tokens that is denoised in place. */
export type TextMode = 'autoregressive' | 'block_diffusion';

/** What a model of text can do. */
export interface TextCard extends ModelCard {
  kind: 'text';
  mode: TextMode;
  /** Tokens that it reads and writes together at most: as many as the model was made for, or as its worker has room for. */
  maxModelTokens: number;
  /** Ids of tokens are below this. The codec may have more that the model does not read, such as those of pictures. */
  vocabularySize: number;
  /** What turns text into ids and back, by the name under which the store keeps it: the SHA-256 of its bytes, in hex. */
  codec: string;
  /** Whether there is a template for messages; one without takes prompts only. */
  hasChatTemplate: boolean;
  /** Whether that template knows tools. */
  hasTools: boolean;
  /** What is meant where a request does not say, as its generation_config.json has it. */
  defaults: { maxTokens: number; temperature: number; topP: number; topK: number };
  /** Of block diffusion: tokens of a block, and how probable a token must be to be kept (0–1). */
  block?: { size: number; confidenceThreshold: number };
  /** Whether a row has the same bytes whoever shares its steps; if not, why. */
  deterministic: { is: true } | { is: false; reason: string };
}

/** Tokens that a model has room to write after a prompt: of block diffusion whole blocks. 0 or less: the prompt is too long. */
export function roomAfter({ maxModelTokens, block }: Pick<TextCard, 'maxModelTokens' | 'block'>, promptTokens: number) {
  const left = maxModelTokens - promptTokens;
  return block === undefined ? left : left - (left % block.size);
}
