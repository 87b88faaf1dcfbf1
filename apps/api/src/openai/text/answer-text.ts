/** Answers of `POST /v1/chat/completions` and `POST /v1/completions`. Each is a view of an ordinary text request. */
import { type OutputInfo, timeOfRequestId } from '@darkroom/core';
import {
  readCalls,
  text as textKind,
  type TextInput,
  textOutputFacts,
  type TokenLogprob,
  toolCallView,
  type ToolCallView,
} from '@darkroom/kinds';
import type { ApiContext } from '../../context/context.ts';
import { withClientFieldNames } from '../../compat/client-field-names.ts';
import { heartbeatFrame, sseFrame } from '../../follow/sse-frame.ts';
import type { ApiCall } from '../../http/api-env.ts';
import { readJsonBody } from '../../body/read-json-body.ts';
import type { SubmittedRequest } from '../../submit/submit-request.ts';
import { answerStored, streamStored } from '../../answer/answer-stored.ts';
import { textChanged } from '../../answer/stored-request-error.ts';
import { followTexts } from './follow-texts.ts';
import { ChoiceChunks, type ChoicePart } from './text-chunks.ts';
import { finishReasonOf, openaiUsage, type TextShape, tokensOf } from './text-shape.ts';
import type { ClientWatch } from '../../answer/watch-client.ts';

/** A parsed body of one of the routes. */
export interface ParsedTextBody {
  /** Body for `submitRequest`, which validates it. */
  body: object;
  /** The client's names of our fields, where they differ. Errors use the client's names. */
  names: Readonly<Record<string, string>>;
  isStream: boolean;
  /** The stream ends with a chunk with `usage`. */
  includesUsage: boolean;
  /** Bodies of further prompts. Each becomes a separate request; its choices follow those of `body`. */
  others?: readonly object[];
  /** Text to put before each choice of a prompt, by index of the prompt. */
  echoes?: readonly string[];
  /** `max_tokens: 0`: run the prompt and discard the generated text. */
  isPromptOnly?: boolean;
}

export async function answerText(
  c: ApiCall,
  context: ApiContext,
  parse: (body: unknown) => ParsedTextBody,
  shape: TextShape,
  answerMany?: (c: ApiCall, context: ApiContext, parsed: ParsedTextBody, shape: TextShape) => Promise<Response>,
): Promise<Response> {
  const parsed = parse(await readJsonBody(c, context.config.maxBodyBytes));
  const submission = { body: parsed.body, kind: textKind.id };
  if (answerMany !== undefined && (parsed.others ?? parsed.echoes ?? parsed.isPromptOnly) !== undefined)
    return withClientFieldNames(parsed.names, () => answerMany(c, context, parsed, shape));
  return withClientFieldNames(parsed.names, () =>
    parsed.isStream
      ? streamStored(c, context, submission, (...of) => chunkFrames(context, shape, parsed, ...of), 'chunks')
      : answerStored(c, context, submission, (...of) => fullAnswer(context, shape, ...of)),
  );
}

interface Choice {
  index: number;
  [field: string]: unknown;
}

/** Returns the fields common to all answers and chunks. */
export function headOf({ id, model }: SubmittedRequest, { idPrefix }: TextShape, object: string) {
  return { id: `${idPrefix}${id}`, object, created: Math.floor(timeOfRequestId(id) / 1000), model };
}

async function fullAnswer(
  context: ApiContext,
  shape: TextShape,
  submitted: SubmittedRequest,
  watch: ClientWatch,
): Promise<object> {
  const { choices, outputs } = await readChoices(context, shape, submitted, watch);
  return { ...headOf(submitted, shape, shape.answerObject), choices, usage: openaiUsage(outputs) };
}

/** Waits until all texts are complete and returns them as choices. */
export async function readChoices(
  context: ApiContext,
  shape: TextShape,
  submitted: SubmittedRequest,
  watch: ClientWatch,
): Promise<{ choices: Choice[]; outputs: OutputInfo[] }> {
  const outputs: OutputInfo[] = [];
  const choices: Choice[] = [];
  const tokens = new Map<number, readonly TokenLogprob[] | undefined>();
  for await (const item of followTexts(context, { id: submitted.id, watch, withText: true })) {
    if (item === 'heartbeat' || item.type === 'block') continue;
    if (item.type === 'taken-back') tokens.set(item.index, undefined);
    else if (item.type === 'added') {
      const { index } = item;
      tokens.set(index, joinTokens(tokens.has(index) ? tokens.get(index) : [], tokensOf(submitted, item)));
    } else {
      const { index } = item.output;
      const logprobs = tokens.has(index) ? tokens.get(index) : tokensOf(submitted, { facts: {} });
      outputs[index] = item.output;
      const { text, calls } = splitCalls(submitted, item.text, index);
      choices[index] = {
        index,
        ...shape.fullChoice(text, calls),
        logprobs: logprobs === undefined ? null : shape.logprobs(logprobs, item.text, 0),
        finish_reason: finishReasonOf(textOutputFacts(item.output), calls.length),
      };
    }
  }
  return { choices, outputs };
}

/** Splits a text into content and tool calls. */
function splitCalls(
  { id, input }: SubmittedRequest,
  text: string,
  index: number,
): { text: string; calls: ToolCallView[] } {
  const { callMarkup } = input as TextInput;
  if (callMarkup === undefined) return { text, calls: [] };
  const parsed = readCalls(callMarkup, text);
  return { text: parsed.text, calls: parsed.calls.map((call, at) => toolCallView(call, { id, index, at })) };
}

/** Concatenates the lists; undefined if either is undefined, because the tokens would then have gaps. */
function joinTokens(before: readonly TokenLogprob[] | undefined, more: readonly TokenLogprob[] | undefined) {
  return before === undefined || more === undefined ? undefined : [...before, ...more];
}

/** Yields each chunk of each text as it is written. */
async function* chunkFrames(
  context: ApiContext,
  shape: TextShape,
  { includesUsage }: Pick<ParsedTextBody, 'includesUsage'>,
  submitted: SubmittedRequest,
  watch: ClientWatch,
): AsyncGenerator<string, void> {
  const head = headOf(submitted, shape, shape.chunkObject);
  const frameOf = (choices: readonly object[], usage: object | null = null): string =>
    sseFrame({ data: { ...head, choices, ...(includesUsage && { usage }) } });
  const choices = new Map<number, ChoiceChunks>();
  const choiceOf = (index: number): ChoiceChunks => {
    const choice = choices.get(index) ?? new ChoiceChunks(shape, { ...submitted, index });
    choices.set(index, choice);
    return choice;
  };
  const framesOfParts = (index: number, parts: readonly ChoicePart[]): string[] =>
    parts.map(({ part, ...rest }) => frameOf([{ index, ...part, ...rest }]));
  const outputs: OutputInfo[] = [];
  for await (const item of followTexts(context, { id: submitted.id, watch })) {
    if (item === 'heartbeat') yield heartbeatFrame;
    else if (item.type === 'taken-back') throw textChanged(submitted.id);
    else if (item.type === 'added') {
      const { index, text } = item;
      yield* framesOfParts(index, choiceOf(index).add(text, tokensOf(submitted, item)));
    } else if (item.type === 'finished') {
      const { output } = item;
      // Store by index: usage of the prompt is read from output 0, which need not finish first.
      outputs[output.index] = output;
      yield* framesOfParts(output.index, choiceOf(output.index).end(output));
    }
  }
  if (includesUsage) yield frameOf([], openaiUsage(outputs));
}
