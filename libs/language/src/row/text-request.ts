import { DarkroomError } from '@darkroom/core';
import { roomAfter, type TextCard, type TextInput } from '@darkroom/kinds';
import { z } from 'zod';

const id = z.number().int().min(0);
const schema = z.object({
  prompt: z.array(id).min(1),
  n: z.number().int().min(1).max(10),
  maxTokens: z.number().int().min(1),
  temperature: z.number().min(0).max(2),
  topP: z.number().gt(0).max(1),
  topK: z.number().int().min(0),
  minP: z.number().min(0).max(1),
  presencePenalty: z.number().min(-2).max(2),
  frequencyPenalty: z.number().min(-2).max(2),
  logitBias: z.record(z.string().regex(/^\d+$/u), z.number().min(-100).max(100)),
  logprobs: z.number().int().min(0).max(20).exactOptional(),
  seed: z
    .number()
    .int()
    .min(0)
    .max(2 ** 32 - 1),
  stop: z.array(z.string().min(1)).max(16),
  ignoreEos: z.boolean(),
  maxCalls: z.number().int().min(1).exactOptional(),
  confidenceThreshold: z.number().min(0).max(1).exactOptional(),
  tokensPerCall: z.number().int().min(1).exactOptional(),
});

/** What a pipeline reads of a request, checked. */
export interface TextRequest extends TextInput {
  /** Tokens that are written at most: `maxTokens`, as far as the model has room after the prompt. */
  readonly limit: number;
}

/**
 * Checks a request once more where it is served: the door did so by the model's card, but a queue outlives deployments.
 *
 * @throws DarkroomError `invalid_request` naming the field.
 */
export function checkTextRequest(input: unknown, card: TextCard): TextRequest {
  const result = schema.safeParse(input);
  if (!result.success) {
    const { path, message } = result.error.issues[0]!;
    throw invalid(`${path.join('.')}: ${message}`, result.error);
  }
  const request: TextInput = result.data;
  const { prompt, logitBias, maxTokens } = request;
  const { vocabularySize, maxModelTokens } = card;
  const unknown = [...prompt, ...Object.keys(logitBias).map(Number)].find((id) => id >= vocabularySize);
  if (unknown !== undefined)
    throw invalid(`prompt and logitBias: ${unknown} is not a token; the model has ${vocabularySize}`);
  const room = roomAfter(card, prompt.length);
  if (room <= 0)
    throw invalid(`prompt: has ${prompt.length} tokens, and the model reads and writes ${maxModelTokens} together`);
  if (card.mode === 'block_diffusion' && request.logprobs !== undefined)
    throw invalid('logprobs: a model of block diffusion has none');
  return { ...request, limit: Math.min(maxTokens, room) };
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'language.create-rows', message, cause);
}
