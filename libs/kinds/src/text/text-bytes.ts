/** The most bytes that a text request may keep in the store at once. */
import { formOf } from './form/form-schema.ts';
import type { TextInput } from './text-input.ts';
import type { UpstreamTextInput } from './upstream/upstream-text.ts';

/** UTF-8 of a token. Vocabularies have few that are longer, and a text is not made of those. */
const tokenBytes = 16;
/** The text stands in the log as it came, in the snapshot that takes the log's place, and as an output. */
const copies = 3;
/** Its id, in facts of the log and in a checkpoint. */
const idBytes = 24;
const tokenCopies = copies * tokenBytes + idBytes;
/** What is said of a token's probability, and of each other one. */
const bytesOfLogprob = 128;
/** An entry of the log with its share of the stream; a long log is compacted. */
const logBytes = 64 * 512;
/** Events beside those of text, the random numbers' state, the fields of the request. */
const requestBytes = 16_384;

export function textBytes(input: TextInput | UpstreamTextInput): number {
  const { n, maxTokens, logprobs } = input;
  const perToken = tokenCopies + (logprobs === undefined ? 0 : logprobBytes(logprobs + 1));
  return n * (maxTokens * perToken + logBytes) + givenBytes(input) + requestBytes;
}

/** What to lower when they are too many: what would leave the most bytes away. */
export function heaviestTextField(input: TextInput | UpstreamTextInput, body?: unknown): string {
  if ('asked' in input) return heaviestAskedField(input);
  const { n, maxTokens, logprobs = 0, prompt, said, logitBias, stop, constraint = {}, form = {} } = input;
  const [formField] = Object.keys(form);
  const isChat = typeof body === 'object' && body !== null && 'messages' in body;
  const fields = {
    [isChat ? 'messages' : 'prompt']: givenBytes({ prompt, said }),
    logit_bias: givenBytes(logitBias),
    stop: givenBytes(stop),
    ...(formField !== undefined && { [formField]: givenBytes({ constraint, form }) }),
    top_logprobs: n * maxTokens * logprobBytes(logprobs),
    n: n === 1 ? 0 : n * (maxTokens * tokenCopies + logBytes),
    max_tokens: maxTokens * tokenCopies,
  };
  return Object.entries(fields).reduce((heaviest, field) => (field[1] > heaviest[1] ? field : heaviest))[0];
}

function heaviestAskedField({ n, maxTokens, logprobs, asked, callGrammar = '' }: UpstreamTextInput): string {
  const { prompt, messages } = asked;
  const form = formOf(asked) ?? {};
  const [formField] = Object.keys(form);
  const formBytes = givenBytes({ form, callGrammar });
  const isForm = formField !== undefined && formBytes > givenBytes(prompt === undefined ? (messages ?? []) : [prompt]);
  if (isForm && formBytes > n * maxTokens) return formField;
  if ((prompt ?? messages ?? []).length > n * maxTokens) return prompt === undefined ? 'messages' : 'prompt';
  if (logprobs !== undefined && logprobs > 0) return 'top_logprobs';
  return n > 1 ? 'n' : 'max_tokens';
}

/** What a client gave is stored with the prompt and without: where prompts are not kept, both are. */
function givenBytes(given: object): number {
  return 2 * Buffer.byteLength(JSON.stringify(given));
}

function logprobBytes(tokens: number): number {
  return 2 * tokens * bytesOfLogprob;
}
