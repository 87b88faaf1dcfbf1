import { type FieldProblem, invalidValue, type ModelCard } from '@darkroom/core';
import type { ResolveResult } from '../request/kind.ts';
import type { RequestPolicy } from '../request/request-fields.ts';
import { resolveBody } from '../request/resolve-body.ts';
import { imagePrompt } from './form/image-tokens.ts';
import type { PromptJob, PromptRead } from './codec/read-prompt.ts';
import type { TextCodec } from './codec/text-codec.ts';
import { formProblems } from './form-problems.ts';
import { formOf, toolsInUse } from './form/form-schema.ts';
import { remainingTokens, type TextCard, type TextInput } from './form/text-input.ts';
import { mentionsImages } from './form/image-parts.ts';
import { chatMessagesOf } from './form/message-content.ts';
import { sizeProblems } from './form/text-limits.ts';
import { imageProblems, imageTokenProblem, readImagesOf, type StoredImages } from './text-images.ts';
import { charactersOf, foreignTextFields, seedOf, type TextBody, textSchema } from './text-schema.ts';
import type { UpstreamTextCard } from './upstream-text.ts';

/**
 * Factor by which normalizers and templates may shorten a text: a text with more than this many times the characters of
 * the longest possible prompt never fits its model.
 */
const maxShrinkFactor = 2;

/** Maximum length of rendered messages, in UTF-16 units; no model reads as much. */
const maxRenderedCharacters = 4_000_000;

/** A model's codec, and the reader that tokenizes long prompts with it. */
export interface ModelReader {
  readonly codec: TextCodec;
  readonly reader: { read(job: PromptJob, requester: RequestPolicy['requester']): Promise<PromptRead> };
}

/** Validates a body against the schema and the capabilities of its model, as far as that takes no tokens. */
export function resolveTextBody(
  body: unknown,
  card: TextCard | UpstreamTextCard,
  options: RequestPolicy,
  formProblemsOf: (request: TextBody) => FieldProblem[],
): ResolveResult<TextBody> {
  const tooLarge = sizeProblems(body);
  if (tooLarge.length > 0) return { status: 'invalid', problems: tooLarge };
  return resolveBody(body, {
    schema: textSchema,
    options,
    compatNames: foreignTextFields,
    problemsOf: (request) => [
      ...modeProblems(request, card, options.models),
      ...vocabularyProblems(request, card),
      ...formProblemsOf(request),
    ],
    inputOf: (request) => request,
  });
}

/** Validates a request body, and counts the tokens of its prompt. */
export async function resolveText(
  body: unknown,
  card: TextCard,
  model: ModelReader,
  options: RequestPolicy,
): Promise<ResolveResult<TextInput>> {
  const { codec } = model;
  const resolved = resolveTextBody(body, card, options, (request) => formProblems(request, card, codec.calls));
  if (resolved.status === 'invalid') return resolved;
  const given = resolved.request.input;
  const images = mentionsImages(given) ? await readImagesOf(given, options) : undefined;
  if (images?.status === 'invalid') return images;
  const request = images === undefined ? given : { ...given, prompt: undefined, messages: images.messages };
  const read = await readPrompt(request, card, { ...model, sizes: images?.sizes }, options);
  const problems = 'problem' in read ? [read.problem] : lengthProblems(request, card, read.ids.length);
  if ('problem' in read || problems.length > 0) return { status: 'invalid', problems };
  const input = {
    ...fillDefaults(request, card, read.ids, options),
    ...formInput(request, codec),
    ...(images && { images: images.sizes, messages: images.messages }),
  };
  return {
    status: 'resolved',
    request: { ...resolved.request, input, ...(images && { attachments: images.attachments }) },
  };
}

/** Images of a request that were read. */
type ReadImages = Extract<StoredImages, { status: 'read' }>;

/** Returns problems with fields that this model does not support or that exclude or require each other. */
function modeProblems(
  request: TextBody,
  card: TextCard | UpstreamTextCard,
  models?: readonly ModelCard[],
): FieldProblem[] {
  const problems = imageProblems(request, card, models);
  if (card.block === undefined)
    for (const field of ['max_nfe', 'confidence_threshold', 'tokens_per_step'] as const)
      if (request[field] !== undefined)
        problems.push(
          invalidValue(field, request[field], `nothing: ${card.id} writes token by token, and has no blocks`),
        );
  if (card.block !== undefined && request.logprobs === true)
    problems.push(
      invalidValue('logprobs', true, `nothing: ${card.id} writes several tokens at once, and reports none`),
    );
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

/** Returns problems with token ids outside the model's vocabulary. */
function vocabularyProblems(
  { prompt, logit_bias: biases = {} }: TextBody,
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

/** Returns the form and the markup of tool calls. The constraint is built later because that is slow. */
function formInput(request: TextBody, { calls }: TextCodec): Pick<TextInput, 'form' | 'callMarkup'> {
  const form = formOf(request);
  const callMarkup = toolsInUse(request) !== undefined && 'markup' in calls ? calls.markup : undefined;
  return { ...(form && { form }), ...(callMarkup && { callMarkup }) };
}

/** Returns the token ids of the prompt or messages, or a problem. Does not tokenize a prompt that cannot fit. */
async function readPrompt(
  { prompt, messages = [], ...request }: TextBody,
  card: TextCard,
  { codec, reader, sizes }: ModelReader & { sizes: ReadImages['sizes'] | undefined },
  { requester }: RequestPolicy,
): Promise<{ ids: readonly number[] } | { problem: FieldProblem }> {
  if (typeof prompt === 'object') {
    const problem = imageTokenProblem(prompt, 'prompt', card);
    return problem === undefined ? { ids: prompt } : { problem };
  }
  const field = prompt === undefined ? 'messages' : 'prompt';
  const sentCharacters = prompt === undefined ? charactersOf(messages) : prompt.length;
  if (cannotFit(sentCharacters, card, codec)) return { problem: tooLongProblem(prompt, sentCharacters, card, codec) };
  const hopeless = maxFittingCharacters(card, codec);
  const maxCharacters = prompt === undefined ? Math.min(maxRenderedCharacters, hopeless) : hopeless;
  const given = prompt === undefined ? { messages: chatMessagesOf(messages), tools: toolsInUse(request) } : { prompt };
  const images = card.images && {
    token: card.images.token,
    texts: (sizes ?? []).map((size) => imagePrompt(card.images!, size)),
  };
  const read = await reader.read({ ...given, images, maxCharacters, maxTokens: tokenReadLimit(card) }, requester);
  // The problem starts with the field's name; for messages, with the rejected message's path.
  if ('problem' in read) return { problem: problemOf(read.problem) };
  if ('characters' in read)
    return {
      problem: cannotFit(read.characters, card, codec)
        ? tooLongProblem(prompt, read.characters, card, codec)
        : problemOf(
            `messages: become ${read.characters} characters by the model's template, expected at most ${maxCharacters}`,
          ),
    };
  const { ids } = read;
  const unknownToken = ids.find((id) => id >= card.vocabularySize);
  if (unknownToken !== undefined) return { problem: unknownTokenProblem(unknownToken, field, card, codec) };
  if (ids.length === 0) return { problem: invalidValue(field, prompt ?? messages, 'at least one token') };
  const problem = imageTokenProblem(ids, field, card, sizes);
  return problem === undefined ? { ids } : { problem };
}

function problemOf(message: string): FieldProblem {
  return { field: message.split(':')[0], code: 'invalid_value', message };
}

/** Returns the problem of a token that the tokenizer has but the model does not. */
function unknownTokenProblem(
  token: number,
  field: string,
  { id, vocabularySize }: TextCard,
  codec: TextCodec,
): FieldProblem {
  const came = `${JSON.stringify(new TextDecoder().decode(codec.bytesOf(token)))}, token ${token}`;
  const message = `${field}: has ${came}, expected tokens below ${vocabularySize}, as many as ${id} has`;
  return { field, code: 'invalid_value', message };
}

/**
 * Returns the token count above which a prompt read in chunks surely does not fit the model. Twice the limit: chunks
 * may have more tokens together than the full text.
 */
export function tokenReadLimit({ maxModelTokens }: TextCard): number {
  return 2 * maxModelTokens;
}

/** Returns whether a text has too many characters to fit the model, however it is tokenized. */
function cannotFit(characters: number, card: TextCard, codec: TextCodec): boolean {
  return characters > maxFittingCharacters(card, codec);
}

function maxFittingCharacters({ maxModelTokens }: TextCard, { longestToken }: TextCodec): number {
  return maxShrinkFactor * maxModelTokens * longestToken;
}

function tooLongProblem(
  prompt: TextBody['prompt'],
  characters: number,
  { id, maxModelTokens: limit }: TextCard,
  { longestToken }: TextCodec,
): FieldProblem {
  const field = prompt === undefined ? 'messages' : 'prompt';
  const came = `${prompt === undefined ? 'have' : 'has'} ${characters} characters`;
  const tokens = Math.ceil(characters / longestToken);
  return {
    field,
    code: 'context_length_exceeded',
    message: `${field} ${came}, at least ${tokens} tokens, expected at most ${limit - 1}: ${describeContext(id, limit)}`,
  };
}

/** Describes the context limit. LiteLLM and LangChain match the first words. */
function describeContext(id: string, limit: number): string {
  return `this model's maximum context length is ${limit} tokens, which ${id} reads and writes together`;
}

function lengthProblems(
  { max_tokens: maxTokens, prompt, messages }: TextBody,
  card: TextCard,
  promptTokens: number,
): FieldProblem[] {
  const { maxModelTokens: limit, block } = card;
  const code = 'context_length_exceeded';
  const left = remainingTokens(card, promptTokens);
  if (left <= 0) {
    const field = messages === undefined ? 'prompt' : 'messages';
    const max = tokenReadLimit(card);
    // Reading stops at this count, so the exact number is unknown above it.
    const count = promptTokens > max ? `at least ${max}` : promptTokens;
    const came = prompt === undefined ? 'have' : 'has';
    return [
      {
        field,
        code,
        message: `${field} ${came} ${count} tokens, expected at most ${limit - (block?.size ?? 1)}: ${describeContext(card.id, limit)}`,
      },
    ];
  }
  if (maxTokens === undefined || maxTokens <= left) return [];
  const pieces = block === undefined ? '' : `, in blocks of ${block.size}`;
  return [
    {
      field: 'max_tokens',
      code,
      message: `max_tokens is ${maxTokens}, expected at most ${left}: ${describeContext(card.id, limit)}${pieces}, and the prompt has ${promptTokens}`,
    },
  ];
}

function fillDefaults(
  request: TextBody,
  card: TextCard,
  prompt: readonly number[],
  { drawSeed }: RequestPolicy,
): TextInput {
  const { defaults } = card;
  const { stop = [] } = request;
  return {
    prompt,
    n: request.n ?? 1,
    maxTokens: request.max_tokens ?? Math.min(defaults.maxTokens, remainingTokens(card, prompt.length)),
    temperature: request.temperature ?? defaults.temperature,
    topP: request.top_p ?? defaults.topP,
    topK: request.top_k ?? defaults.topK,
    minP: request.min_p ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
    frequencyPenalty: request.frequency_penalty ?? 0,
    logitBias: request.logit_bias ?? {},
    ...(request.logprobs === true && { logprobs: request.top_logprobs ?? 0 }),
    seed: seedOf(request.seed) ?? drawSeed(),
    stop: typeof stop === 'string' ? [stop] : stop,
    ignoreEos: request.ignore_eos ?? false,
    ...(request.max_nfe !== undefined && { maxCalls: request.max_nfe }),
    ...(request.confidence_threshold !== undefined && { confidenceThreshold: request.confidence_threshold }),
    ...(request.tokens_per_step !== undefined && { tokensPerCall: request.tokens_per_step }),
  };
}
