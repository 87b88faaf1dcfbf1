import { DarkroomError, type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { resolveBody } from '../resolve-body.ts';
import type { TextCodec } from './codec/text-codec.ts';
import type { TextCard } from './text-card.ts';
import type { TextInput } from './text-input.ts';
import { foreignTextFields, type TextRequest, textSchema } from './text-schema.ts';
import type { UpstreamTextCard } from './upstream/upstream-text.ts';

/** Checks a request's body against the schema and then against what its model can do. */
export function resolveText(
  body: unknown,
  card: TextCard,
  codec: TextCodec,
  options: RequestOptions,
): ResolveResult<TextInput> {
  let prompt: readonly number[] = [];
  return resolveBody(body, {
    schema: textSchema,
    options,
    foreignNames: foreignTextFields,
    problemsOf(request) {
      const problems = [...modeProblems(request, card), ...vocabularyProblems(request, card)];
      if (problems.length > 0) return problems;
      const read = readPrompt(request, codec);
      if ('problem' in read) return [read.problem];
      prompt = read.ids;
      return lengthProblems(request, card, prompt.length);
    },
    inputOf: (request) => fillDefaults(request, card, prompt, options),
  });
}

/** What this model cannot do, or what goes together only. */
export function modeProblems(request: TextRequest, card: TextCard | UpstreamTextCard): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (card.block === undefined)
    for (const field of ['max_nfe', 'confidence_threshold', 'tokens_per_step'] as const)
      if (request[field] !== undefined)
        problems.push(
          invalidValue(field, request[field], `nothing: ${card.id} writes token by token, and has no blocks`),
        );
  if (card.block !== undefined && request.logprobs === true)
    problems.push(invalidValue('logprobs', true, `nothing: ${card.id} writes several tokens at once, and says none`));
  if (request.confidence_threshold !== undefined && request.tokens_per_step !== undefined)
    problems.push(invalidValue('tokens_per_step', request.tokens_per_step, 'nothing beside confidence_threshold'));
  if (request.top_logprobs !== undefined && request.logprobs !== true)
    problems.push(invalidValue('top_logprobs', request.top_logprobs, 'nothing without "logprobs": true'));
  if (request.prompt !== undefined && request.messages !== undefined)
    problems.push(invalidValue('messages', request.messages, 'nothing beside prompt'));
  if (request.prompt === undefined && request.messages === undefined)
    problems.push(invalidValue('prompt', undefined, 'text, or messages instead'));
  if (request.messages !== undefined && !card.hasChatTemplate)
    problems.push(
      invalidValue('messages', request.messages, `nothing: ${card.id} has no template for messages, send a prompt`),
    );
  return problems;
}

/** Ids that are of no token. */
export function vocabularyProblems(
  { prompt, logit_bias: biases = {} }: TextRequest,
  { id, vocabularySize = Infinity }: TextCard | UpstreamTextCard,
): FieldProblem[] {
  const expected = `an id below ${vocabularySize}, as many as ${id} has`;
  const problems: FieldProblem[] = [];
  const place = Array.isArray(prompt) ? prompt.findIndex((id) => id >= vocabularySize) : -1;
  if (place >= 0) problems.push(invalidValue(`prompt.${place}`, (prompt as number[])[place], expected));
  const bias = Object.keys(biases).find((id) => Number(id) >= vocabularySize);
  if (bias !== undefined) problems.push(invalidValue('logit_bias', bias, expected));
  return problems;
}

/** The ids of what is to be continued, or why there are none. */
function readPrompt(
  { prompt, messages = [] }: TextRequest,
  codec: TextCodec,
): { ids: readonly number[] } | { problem: FieldProblem } {
  if (Array.isArray(prompt)) return { ids: prompt };
  try {
    const ids =
      prompt === undefined
        ? codec.encode(codec.renderChat(messages), { addSpecialTokens: false })
        : codec.encode(prompt, { addSpecialTokens: true });
    if (ids.length > 0) return { ids };
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'invalid_request') throw error;
    return { problem: { field: 'messages', code: 'invalid_value', message: error.message } };
  }
  const field = prompt === undefined ? 'messages' : 'prompt';
  return { problem: invalidValue(field, prompt ?? messages, 'at least one token') };
}

function lengthProblems(
  { max_tokens: maxTokens, prompt, messages }: TextRequest,
  card: TextCard,
  promptTokens: number,
): FieldProblem[] {
  const { maxModelTokens: limit } = card;
  const code = 'context_length_exceeded';
  if (promptTokens >= limit) {
    const field = messages === undefined ? 'prompt' : 'messages';
    const came = prompt === undefined ? 'have' : 'has';
    return [
      {
        field,
        code,
        message: `${field} ${came} ${promptTokens} tokens, expected at most ${limit - 1}: ${card.id} reads and writes ${limit} together`,
      },
    ];
  }
  if (maxTokens === undefined || promptTokens + maxTokens <= limit) return [];
  const left = limit - promptTokens;
  return [
    {
      field: 'max_tokens',
      code,
      message: `max_tokens is ${maxTokens}, expected at most ${left}: ${card.id} reads and writes ${limit} tokens together, and the prompt has ${promptTokens}`,
    },
  ];
}

function fillDefaults(
  request: TextRequest,
  card: TextCard,
  prompt: readonly number[],
  { drawSeed }: RequestOptions,
): TextInput {
  const { defaults, maxModelTokens } = card;
  const { stop = [] } = request;
  return {
    prompt,
    n: request.n ?? 1,
    maxTokens: request.max_tokens ?? Math.min(defaults.maxTokens, maxModelTokens - prompt.length),
    temperature: request.temperature ?? defaults.temperature,
    topP: request.top_p ?? defaults.topP,
    topK: request.top_k ?? defaults.topK,
    minP: request.min_p ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
    frequencyPenalty: request.frequency_penalty ?? 0,
    logitBias: request.logit_bias ?? {},
    ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
    seed: request.seed ?? drawSeed(),
    stop: typeof stop === 'string' ? [stop] : stop,
    ignoreEos: request.ignore_eos ?? false,
    ...(request.max_nfe !== undefined && { maxCalls: request.max_nfe }),
    ...(request.confidence_threshold !== undefined && { confidenceThreshold: request.confidence_threshold }),
    ...(request.tokens_per_step !== undefined && { tokensPerCall: request.tokens_per_step }),
  };
}
