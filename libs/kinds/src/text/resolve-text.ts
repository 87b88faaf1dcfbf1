import { DarkroomError, type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { resolveBody } from '../resolve-body.ts';
import type { TextCodec } from './codec/text-codec.ts';
import { formProblems } from './form/form-problems.ts';
import { formOf, toolsInUse } from './form/form-schema.ts';
import { roomAfter, type TextCard } from './text-card.ts';
import type { TextInput } from './text-input.ts';
import { charactersOf, foreignTextFields, type TextRequest, textSchema } from './text-schema.ts';
import type { UpstreamTextCard } from './upstream/upstream-text.ts';

/** What normalizers and templates may leave out of a text: of so many times the most characters, no text fits a model. */
const leftOut = 2;

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
      const problems = [
        ...modeProblems(request, card),
        ...vocabularyProblems(request, card),
        ...formProblems(request, card, codec.calls),
      ];
      if (problems.length > 0) return problems;
      const read = readPrompt(request, card, codec);
      if ('problem' in read) return [read.problem];
      prompt = read.ids;
      return lengthProblems(request, card, prompt.length);
    },
    inputOf: (request) => ({ ...fillDefaults(request, card, prompt, options), ...formInput(request, codec) }),
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

/** Without the constraint: making one takes its time. */
function formInput(request: TextRequest, { calls }: TextCodec): Pick<TextInput, 'form' | 'callMarkup'> {
  const form = formOf(request);
  const callMarkup = toolsInUse(request) !== undefined && 'markup' in calls ? calls.markup : undefined;
  return { ...(form && { form }), ...(callMarkup && { callMarkup }) };
}

/** The ids of what is to be continued, or why there are none. What cannot fit the model is not read, which takes its time. */
function readPrompt(
  { prompt, messages = [], ...request }: TextRequest,
  card: TextCard,
  codec: TextCodec,
): { ids: readonly number[] } | { problem: FieldProblem } {
  if (Array.isArray(prompt)) return { ids: prompt };
  const tools = toolsInUse(request);
  const field = prompt === undefined ? 'messages' : 'prompt';
  try {
    const said = prompt === undefined ? charactersOf(messages) : prompt.length;
    if (isHopeless(said, card, codec)) return { problem: tooLong(prompt, said, card, codec) };
    const text = prompt ?? codec.renderChat(messages, { ...(tools && { tools }) });
    if (isHopeless(text.length, card, codec)) return { problem: tooLong(prompt, text.length, card, codec) };
    const ids = codec.encode(text, { addSpecialTokens: prompt !== undefined });
    const foreign = ids.find((id) => id >= card.vocabularySize);
    if (foreign !== undefined) return { problem: unreadable(foreign, field, card, codec) };
    if (ids.length > 0) return { ids };
  } catch (error) {
    if (!DarkroomError.isInstance(error) || error.code !== 'invalid_request') throw error;
    // Of messages it begins with the one that is not taken.
    return { problem: { field: error.message.split(':')[0], code: 'invalid_value', message: error.message } };
  }
  return { problem: invalidValue(field, prompt ?? messages, 'at least one token') };
}

/** A token that the tokenizer has, and the model has not. */
function unreadable(token: number, field: string, { id, vocabularySize }: TextCard, codec: TextCodec): FieldProblem {
  const came = `${JSON.stringify(new TextDecoder().decode(codec.bytesOf(token)))}, token ${token}`;
  const message = `${field}: has ${came}, expected tokens below ${vocabularySize}, as many as ${id} has`;
  return { field, code: 'invalid_value', message };
}

/** Tokens of a text whose beginning, read in pieces that may have some more tokens than the whole, does not fit the model. */
export function certainlyTooMany({ maxModelTokens }: TextCard): number {
  return 2 * maxModelTokens;
}

/** Too many characters, whatever tokens they are. */
function isHopeless(characters: number, { maxModelTokens }: TextCard, { longestToken }: TextCodec): boolean {
  return characters > leftOut * maxModelTokens * longestToken;
}

function tooLong(
  prompt: TextRequest['prompt'],
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
    message: `${field} ${came}, at least ${tokens} tokens, expected at most ${limit - 1}: ${id} reads and writes ${limit} together`,
  };
}

function lengthProblems(
  { max_tokens: maxTokens, prompt, messages }: TextRequest,
  card: TextCard,
  promptTokens: number,
): FieldProblem[] {
  const { maxModelTokens: limit, block } = card;
  const code = 'context_length_exceeded';
  const left = roomAfter(card, promptTokens);
  if (left <= 0) {
    const field = messages === undefined ? 'prompt' : 'messages';
    const most = certainlyTooMany(card);
    // Of more than these nobody has counted all.
    const count = promptTokens > most ? `at least ${most}` : promptTokens;
    const came = prompt === undefined ? 'have' : 'has';
    return [
      {
        field,
        code,
        message: `${field} ${came} ${count} tokens, expected at most ${limit - (block?.size ?? 1)}: ${card.id} reads and writes ${limit} together`,
      },
    ];
  }
  if (maxTokens === undefined || maxTokens <= left) return [];
  const pieces = block === undefined ? '' : `, in blocks of ${block.size}`;
  return [
    {
      field: 'max_tokens',
      code,
      message: `max_tokens is ${maxTokens}, expected at most ${left}: ${card.id} reads and writes ${limit} tokens together${pieces}, and the prompt has ${promptTokens}`,
    },
  ];
}

function fillDefaults(
  request: TextRequest,
  card: TextCard,
  prompt: readonly number[],
  { drawSeed }: RequestOptions,
): TextInput {
  const { defaults } = card;
  const { stop = [] } = request;
  return {
    prompt,
    n: request.n ?? 1,
    maxTokens: request.max_tokens ?? Math.min(defaults.maxTokens, roomAfter(card, prompt.length)),
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
