import type { PipelineRow, RowCheckpoint, RowOutput } from '@darkroom/core';
import type { TextCodec, TextOutputFacts } from '@darkroom/kinds';
import { z } from 'zod';
import type { TokenCache } from '../decoder/decoder.ts';
import { createLogitAdjustment, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import type { RowImages } from './row-images.ts';
import { RandomNumbers } from '../sampling/random-numbers.ts';
import type { TextRowRequest } from './text-row-request.ts';
import { RowText } from './row-text.ts';

const word = z
  .number()
  .int()
  .min(0)
  .max(2 ** 32 - 1);
/** Checkpoint of any text. */
const checkpointSchema = z.object({
  tokens: z.array(z.number().int().min(0)),
  random: z.tuple([word, word, word, word]).readonly(),
  calls: z.number().int().min(0),
  cachedTokens: z.number().int().min(0).exactOptional(),
  /** Logprob lines of the last tokens, which were not emitted yet. */
  logprobs: z.array(z.string()).exactOptional(),
  /** Block diffusion: ids of the current block (−1 for masked), and the number of blocks that were reread. */
  block: z.array(z.number().int().min(-1)).exactOptional(),
  readBlocks: z.number().int().min(0).exactOptional(),
});
export type TextCheckpoint = z.infer<typeof checkpointSchema>;

/** The contents of a row, with a checkpoint if it resumes. */
export interface TextRowOptions {
  request: TextRowRequest;
  owner: string | undefined;
  index: number;
  codec: TextCodec;
  endIds: readonly number[];
  checkpoint: TextCheckpoint | undefined;
  /** The prompt's images, which all texts of a request share. */
  images: RowImages | undefined;
}

/** A text in progress. */
export abstract class TextRow implements PipelineRow {
  readonly index: number;
  /** Tokens of cache that it may take. */
  readonly slots: number;
  readonly request: TextRowRequest;
  readonly owner: string | undefined;
  readonly written: RowText;
  readonly random: RandomNumbers;
  readonly images: RowImages | undefined;
  readonly adjustment: LogitAdjustment;
  /** Keys and values of the prompt and of the text, as far as they were read. */
  cache: TokenCache;
  /** Model calls after the prompt, without those repeated after an interruption. */
  calls: number;
  /** Prompt tokens found in another request's cache; undefined before the lookup. */
  cachedTokens: number | undefined;
  /** Prompt tokens copied from any other cache instead of being read. */
  takenTokens = 0;
  /** `read` or `write`. */
  abstract readonly shapeKey: string;

  /** Creates or resumes a text. A checkpoint's tokens are written again without emitting them. */
  constructor({ request, owner, index, codec, endIds, checkpoint, images }: TextRowOptions, cache: TokenCache) {
    this.index = index;
    this.images = images;
    this.slots = request.prompt.length + request.limit;
    this.request = request;
    this.owner = owner;
    this.cache = cache;
    this.adjustment = createLogitAdjustment(request);
    this.written = new RowText({ request, codec, endIds });
    const { tokens = [], logprobs = [], calls = 0 } = checkpoint ?? {};
    for (const [at, id] of tokens.entries()) {
      this.written.push(id, logprobs[at - tokens.length + logprobs.length]);
      this.written.takeDelta();
    }
    this.random = new RandomNumbers(checkpoint?.random ?? (request.seed + index) % 2 ** 32);
    this.calls = calls;
    this.cachedTokens = checkpoint?.cachedTokens;
  }

  /** The tokens of prompt and text. */
  get ids(): readonly number[] {
    const { request, written } = this;
    return written.tokens.length === 0 ? request.prompt : [...request.prompt, ...written.tokens];
  }

  /** Number of tokens of prompt and text that are not in the cache. */
  get unread(): number {
    return this.request.prompt.length + this.written.tokens.length - this.cache.length;
  }

  get isDone(): boolean {
    return this.written.end !== undefined;
  }

  /** The result of a row that is done. */
  get output(): RowOutput {
    const { request, written, calls, cachedTokens } = this;
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
}

/** Encodes a row's state without its cache, which the next worker recomputes. */
export function encodeTextCheckpoint(done: number, checkpoint: TextCheckpoint): RowCheckpoint {
  return { done, data: new TextEncoder().encode(JSON.stringify(checkpoint)) };
}

/** @returns undefined for an invalid checkpoint: the text then restarts. */
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
