/** The most bytes that a text request may keep in the store at once. */
import type { TextInput } from './text-input.ts';
import type { UpstreamTextInput } from './upstream/upstream-text.ts';

/** UTF-8 of a token. Vocabularies have few that are longer, and a text is not made of those. */
const tokenBytes = 16;
/** The text stands in the log as it came, in the snapshot that takes the log's place, and as an output. */
const copies = 3;
/** Its id, in facts of the log and in a checkpoint. */
const idBytes = 24;
/** What is said of a token's probability, and of each other one. */
const logprobBytes = 128;
/** An entry of the log with its share of the stream; a long log is compacted. */
const logBytes = 64 * 512;
/** Events beside those of text, the random numbers' state, the fields of the request. */
const requestBytes = 16_384;

export function textBytes(input: Pick<TextInput, 'n' | 'maxTokens' | 'logprobs'>): number {
  const { n, maxTokens, logprobs } = input;
  const perToken = copies * tokenBytes + idBytes + (logprobs === undefined ? 0 : 2 * (logprobs + 1) * logprobBytes);
  // With the prompt and without: where prompts are not kept, both are stored.
  return n * (maxTokens * perToken + logBytes) + 2 * Buffer.byteLength(JSON.stringify(input)) + requestBytes;
}

/** What to lower when they are too many. */
export function heaviestTextField(input: TextInput | UpstreamTextInput): string {
  const { n, maxTokens, logprobs } = input;
  const { prompt, messages } = 'asked' in input ? input.asked : { prompt: input.prompt };
  if ((prompt ?? messages ?? []).length > n * maxTokens) return prompt === undefined ? 'messages' : 'prompt';
  if (logprobs !== undefined && logprobs > 0) return 'top_logprobs';
  return n > 1 ? 'n' : 'max_tokens';
}
