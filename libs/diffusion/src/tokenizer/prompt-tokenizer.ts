/** What a text encoder reads of a text. */
export interface TokenizedPrompt {
  readonly ids: readonly number[];
  /** Tokens at the text's end that there was no room for; 0 where all of it is read. */
  readonly cutTokens: number;
}

/** Turns prompts into what a text encoder reads. */
export interface PromptTokenizer {
  /** The longest row of ids that `encode` returns. */
  readonly maxTokens: number;
  /** Tokenizes a text as the family's Python original does, with its special tokens, its padding and its way to cut. */
  encode(text: string): TokenizedPrompt;
  /** A row of the kind that `encode` returns, with the highest id there is: to try the encoder with. */
  readonly trialIds: readonly number[];
}
