/** How `POST /v1/chat/completions` and `POST /v1/completions` answer: each a view of a request of text. */
import { type OutputInfo, timeOfRequestId } from '@darkroom/core';
import {
  pieceView,
  readCalls,
  text as textKind,
  type TextInput,
  textOutputFacts,
  type TokenLogprob,
  toolCallView,
  type ToolCallView,
} from '@darkroom/kinds';
import type { ApiContext } from '../../context.ts';
import { inTheirNames } from '../../drop-in/their-names.ts';
import { heartbeatFrame, sseFrame } from '../../follow/sse-frame.ts';
import type { ApiCall } from '../../http/api-env.ts';
import { readJsonBody } from '../../http/read-json-body.ts';
import type { SubmittedRequest } from '../../submit/submit-request.ts';
import { answerStored, streamStored } from '../../follow/answer-stored.ts';
import { textChanged } from '../../follow/stored-request-error.ts';
import { type AddedText, followTexts } from './follow-texts.ts';
import { ChoiceChunks, type ChoicePart } from './text-chunks.ts';
import { finishReasonOf, openaiUsage, type TextShape } from './text-shape.ts';
import type { ClientWatch } from '../../follow/watch-client.ts';

/** What one of the routes makes of a body. */
export interface TextAsk {
  /** For `submitRequest`, which checks it. */
  body: object;
  /** Its fields by what the client calls them, where that is another name. */
  names: Readonly<Record<string, string>>;
  isStream: boolean;
  /** Whether a stream says at its end what was used. */
  includesUsage: boolean;
}

export async function answerText(
  c: ApiCall,
  context: ApiContext,
  parse: (body: unknown) => TextAsk,
  shape: TextShape,
): Promise<Response> {
  const ask = parse(await readJsonBody(c, context.config.maxBodyBytes));
  const submission = { body: ask.body, kind: textKind.id };
  return inTheirNames(ask.names, () =>
    ask.isStream
      ? streamStored(c, context, submission, (...of) => chunkFrames(context, shape, ask, ...of), 'chunks')
      : answerStored(c, context, submission, (...of) => wholeAnswer(context, shape, ...of)),
  );
}

/** What every answer and every chunk begins with. */
function headOf({ id, model }: SubmittedRequest, { idPrefix }: TextShape, object: string) {
  return { id: `${idPrefix}${id}`, object, created: Math.floor(timeOfRequestId(id) / 1000), model };
}

/** Waits for all texts. */
async function wholeAnswer(
  context: ApiContext,
  shape: TextShape,
  submitted: SubmittedRequest,
  watch: ClientWatch,
): Promise<object> {
  const outputs: OutputInfo[] = [];
  const choices: object[] = [];
  const tokens = new Map<number, readonly TokenLogprob[] | undefined>();
  for await (const item of followTexts(context, { id: submitted.id, watch, withText: true })) {
    if (item === 'heartbeat' || item.type === 'block') continue;
    if (item.type === 'taken-back') tokens.set(item.index, undefined);
    else if (item.type === 'added') {
      const { index } = item;
      tokens.set(index, joined(tokens.has(index) ? tokens.get(index) : [], tokensOf(submitted, item)));
    } else {
      const { index } = item.output;
      const said = tokens.has(index) ? tokens.get(index) : tokensOf(submitted, { facts: {} });
      outputs[index] = item.output;
      const { text, calls } = toldIn(submitted, item.text, index);
      choices[index] = {
        index,
        ...shape.whole(text, calls),
        logprobs: said === undefined ? null : shape.logprobs(said, item.text, 0),
        finish_reason: finishReasonOf(textOutputFacts(item.output), calls.length),
      };
    }
  }
  return { ...headOf(submitted, shape, shape.answerObject), choices, usage: openaiUsage(outputs) };
}

/** A text, and the calls of tools that stood in it. */
function toldIn({ id, input }: SubmittedRequest, text: string, index: number): { text: string; calls: ToolCallView[] } {
  const { callMarkup } = input as TextInput;
  if (callMarkup === undefined) return { text, calls: [] };
  const told = readCalls(callMarkup, text);
  return { text: told.text, calls: told.calls.map((call, at) => toolCallView(call, { id, index, at })) };
}

/** A list with a hole in it is none. */
function joined(before: readonly TokenLogprob[] | undefined, more: readonly TokenLogprob[] | undefined) {
  return before === undefined || more === undefined ? undefined : [...before, ...more];
}

/** How probable the tokens of a piece were; undefined where nobody asked, or the log does not say it any more. */
function tokensOf({ input }: SubmittedRequest, { facts }: Pick<AddedText, 'facts'>): TokenLogprob[] | undefined {
  if ((input as TextInput).logprobs === undefined) return undefined;
  return facts === undefined ? undefined : ((pieceView(facts).logprobs ?? []) as TokenLogprob[]);
}

/** Each piece of each text as it comes. */
async function* chunkFrames(
  context: ApiContext,
  shape: TextShape,
  { includesUsage }: Pick<TextAsk, 'includesUsage'>,
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
  function* framesOfParts(index: number, parts: readonly ChoicePart[]): Generator<string, void> {
    for (const { part, ...rest } of parts) yield frameOf([{ index, ...part, ...rest }]);
  }
  const outputs: OutputInfo[] = [];
  for await (const item of followTexts(context, { id: submitted.id, watch })) {
    if (item === 'heartbeat') yield heartbeatFrame;
    else if (item.type === 'taken-back') throw textChanged(submitted.id);
    else if (item.type === 'added') {
      const { index, text } = item;
      yield* framesOfParts(index, choiceOf(index).add(text, tokensOf(submitted, item)));
    } else if (item.type === 'finished') {
      const { output } = item;
      // What is said once for all texts is said of the first, whichever is done first.
      outputs[output.index] = output;
      yield* framesOfParts(output.index, choiceOf(output.index).end(output));
    }
  }
  if (includesUsage) yield frameOf([], openaiUsage(outputs));
}
