import type { PipelineRow, RowCheckpoint, RowOutput, RowRequest } from '@darkroom/core';
import type { TextCodec, TextOutputFacts } from '@darkroom/kinds';
import { z } from 'zod';
import type { TokenCache } from '../decoder/decoder.ts';
import { RandomNumbers } from '../sampling/random-numbers.ts';
import type { TextRequest } from './text-request.ts';
import { WrittenText } from './written-text.ts';

/** One text on its way. */
export interface TextRow extends PipelineRow {
  readonly request: TextRequest;
  readonly owner: string | undefined;
  readonly written: WrittenText;
  readonly random: RandomNumbers;
  /** Of the prompt, and of what is written, as far as it was read. */
  cache: TokenCache;
  /** Calls of the model after the prompt, but those that an interruption made necessary. */
  calls: number;
  /** Tokens of the prompt that were in the cache of another request; undefined before they were looked for. */
  cachedTokens: number | undefined;
}

const word = z
  .number()
  .int()
  .min(0)
  .max(2 ** 32 - 1);
/** What a checkpoint says of any text. */
const checkpointSchema = z.object({
  tokens: z.array(z.number().int().min(0)),
  random: z.tuple([word, word, word, word]).readonly(),
  calls: z.number().int().min(0),
  cachedTokens: z.number().int().min(0).exactOptional(),
  /** Lines of logprobs of the last tokens, that were not said yet. */
  logprobs: z.array(z.string()).exactOptional(),
  /** Of block diffusion: ids of the block in work, −1 for those not known, and the blocks whose tokens were read. */
  block: z.array(z.number().int().min(-1)).exactOptional(),
  readBlocks: z.number().int().min(0).exactOptional(),
});
export type TextCheckpoint = z.infer<typeof checkpointSchema>;

export interface StartTextOptions {
  request: TextRequest;
  owner: string | undefined;
  index: number;
  codec: TextCodec;
  endIds: readonly number[];
  checkpoint: TextCheckpoint | undefined;
}

/** What a text begins with, or goes on with: its checkpoint's tokens are written once more, and said by nobody. */
export function startText(options: StartTextOptions) {
  const { request, owner, index, codec, endIds, checkpoint } = options;
  const written = new WrittenText({ request, codec, endIds });
  const { tokens = [], logprobs = [] } = checkpoint ?? {};
  for (const [at, id] of tokens.entries()) {
    written.push(id, logprobs[at - tokens.length + logprobs.length]);
    written.takeDelta();
  }
  const random = new RandomNumbers(checkpoint?.random ?? (request.seed + index) % 2 ** 32);
  const { calls = 0, cachedTokens } = checkpoint ?? {};
  return { request, owner, written, random, calls, cachedTokens };
}

/** The outputs that a request is to have rows for. */
export function indexesOf({ indexes }: RowRequest, { n }: TextRequest): readonly number[] {
  return indexes ?? Array.from({ length: n }, (_, index) => index);
}

/** Where a row stands, as bytes. The cache is computed anew by who goes on. */
export function encodeTextCheckpoint(done: number, checkpoint: TextCheckpoint): RowCheckpoint {
  return { done, data: new TextEncoder().encode(JSON.stringify(checkpoint)) };
}

/** @returns undefined for bytes that are no checkpoint of such a text: it starts afresh. */
export function decodeTextCheckpoint(
  data: Uint8Array | undefined,
  { limit, vocabularySize }: { limit: number; vocabularySize: number },
): TextCheckpoint | undefined {
  if (data === undefined) return undefined;
  try {
    const checkpoint = checkpointSchema.parse(JSON.parse(new TextDecoder().decode(data)));
    const ids = [...checkpoint.tokens, ...(checkpoint.block ?? [])];
    return checkpoint.tokens.length < limit && ids.every((id) => id < vocabularySize) ? checkpoint : undefined;
  } catch {
    return undefined;
  }
}

/** What a done row has become. */
export function textOutput({ request, written, calls, cachedTokens }: TextRow): RowOutput {
  const end = written.end ?? { reason: 'length' };
  const facts: TextOutputFacts = {
    finish_reason: end.reason,
    ...('stop' in end && { stop: end.stop }),
    prompt_tokens: request.prompt.length,
    completion_tokens: written.tokens.length,
    cached_tokens: cachedTokens ?? 0,
    calls,
  };
  return { data: new TextEncoder().encode(written.text), facts: { ...facts } };
}
