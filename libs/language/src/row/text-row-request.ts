import { DarkroomError, itemAt } from '@darkroom/core';
import { type TextConstraint, remainingTokens, type TextCard, type TextInput } from '@darkroom/kinds';
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
  constraint: z.custom<TextConstraint>((value) => typeof value === 'object' && value !== null).exactOptional(),
});

/** The validated input of a pipeline. */
export interface TextRowRequest extends TextInput {
  /** Max tokens to write: `maxTokens`, limited by the model's capacity after the prompt. */
  readonly limit: number;
}

/**
 * Validates a request again in the worker: the API validated it by the model's card, but queued requests outlive
 * deployments.
 *
 * @throws DarkroomError `invalid_request` naming the field.
 */
export function checkTextRequest(input: unknown, card: TextCard): TextRowRequest {
  const result = schema.safeParse(input);
  if (!result.success) {
    const { path, message } = itemAt(result.error.issues, 0);
    throw invalid(`${path.join('.')}: ${message}`, result.error);
  }
  const request: TextInput = result.data;
  const { prompt, logitBias, maxTokens } = request;
  const { vocabularySize, maxModelTokens } = card;
  const unknown = [...prompt, ...Object.keys(logitBias).map(Number)].find((id) => id >= vocabularySize);
  if (unknown !== undefined)
    throw invalid(`prompt and logitBias: ${unknown} is not a token; the model has ${vocabularySize}`);
  const capacity = remainingTokens(card, prompt.length);
  if (capacity <= 0)
    throw invalid(`prompt: has ${prompt.length} tokens, and the model supports ${maxModelTokens} for prompt and text`);
  if (card.mode === 'block_diffusion' && request.logprobs !== undefined)
    throw invalid('logprobs: not available for block diffusion models');
  if (card.mode === 'block_diffusion' && request.constraint !== undefined)
    throw invalid('constraint: not supported by block diffusion models, which do not write in order');
  if (request.ignoreEos && request.constraint !== undefined)
    throw invalid('ignoreEos: cannot be combined with a constraint, which determines the end of the text');
  return { ...request, limit: Math.min(maxTokens, capacity) };
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'language.create-rows', message, cause);
}
