/**
 * A request's log as the events of a response, as OpenAI's clients know them.
 *
 * What an event says and its `sequence_number` follow from the log alone, and so are the same from every replica at any time.
 * The log is no stable count of pieces: workers join pieces of text, write some again after a restart, and put one snapshot in the
 * place of many. What is stable is the text, which only grows. So numbers count text:
 *
 * | number | event |
 * | --- | --- |
 * | 0, 1, 2 | `response.created`, `.queued`, `.in_progress` |
 * | 3, 4 | `response.output_item.added`, `response.content_part.added` |
 * | 4 + e | `response.output_text.delta` up to UTF-16 unit e of the text |
 * | 5 + n, 6 + n, 7 + n | `response.output_text.done`, `response.content_part.done`, `response.output_item.done`; n: units of the whole text |
 * | 8 + n | `response.completed`, `.incomplete` or `.failed` |
 *
 * A number so says what its reader has: after `4 + e` exactly the first e units. Who resumes after it gets the text from unit e
 * on, whatever pieces it is in by now: nothing is lost, and nothing comes twice. Numbers grow; they jump by the length of each piece,
 * and over events that never come (a response that was canceled in the queue is not in progress first).
 */
import type { RequestEvent } from '@darkroom/core';
import { textOutputFacts } from '@darkroom/kinds';
import { ApiError } from '../http/api-error.ts';
import { createTextReader } from '../openai/text/follow-texts.ts';
import { idOf } from './response-ids.ts';
import {
  initialState,
  messageView,
  partView,
  type ResponseState,
  type ResponseView,
  responseView,
  type StoredResponse,
} from './response-view.ts';

export interface ResponseEvent {
  type: `response.${string}`;
  sequence_number: number;
  [field: string]: unknown;
}

/** The number of the last event before the text. */
const textNumber = 4;

export interface ResponseReaderOptions {
  /** Called when something that was said stays no longer; what it throws `read` throws. */
  onTakenBack?: () => void;
}

/** Follows a request's log from its first entry on, entries that were read before too. */
export class ResponseReader {
  readonly #request: StoredResponse;
  readonly #options: ResponseReaderOptions;
  readonly #itemsOf = createTextReader();
  #state: ResponseState = initialState;
  #hasBegun = false;

  constructor(request: StoredResponse, options: ResponseReaderOptions = {}) {
    this.#request = request;
    this.#options = options;
  }

  /** As it is by now. */
  get response(): ResponseView {
    return responseView(this.#request, this.#state);
  }

  get state(): Readonly<ResponseState> {
    return this.#state;
  }

  get isOver(): boolean {
    return this.#state.status !== 'queued' && this.#state.status !== 'in_progress';
  }

  /** What an entry of the log comes to. Throws 410 where the log has lost text. */
  read(event: RequestEvent): ResponseEvent[] {
    return [...this.#eventsOf(event)];
  }

  *#eventsOf(event: RequestEvent): Generator<ResponseEvent, void> {
    if (this.isOver) return;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      yield this.#lifeEvent('created', 0);
      yield this.#lifeEvent('queued', 1);
    }
    if (event.type === 'started') yield* this.#start();
    const isText = event.type === 'delta' || event.type === 'snapshot';
    if (isText && event.offset > this.#state.text.length) throw textLost(this.#request.id);
    for (const item of this.#itemsOf(event)) {
      // What stands in a block is not there for good.
      if (item.type === 'added') yield* this.#add(item.text);
      else if (item.type === 'taken-back') this.#takeBack(item.length);
      else if (item.type === 'finished') yield* this.#finish(item.output);
    }
    yield* this.#end(event);
  }

  *#start(): Generator<ResponseEvent, void> {
    // It may start many times, and wait again between.
    if (this.#state.status === 'in_progress') return;
    this.#state = { ...this.#state, status: 'in_progress' };
    yield this.#lifeEvent('in_progress', 2);
  }

  *#open(): Generator<ResponseEvent, void> {
    const item = { ...messageView(this.#request.id, this.#state), content: [] };
    yield { type: 'response.output_item.added', sequence_number: 3, output_index: 0, item };
    yield this.#partEvent('content_part.added', textNumber, { part: partView('') });
  }

  *#add(text: string): Generator<ResponseEvent, void> {
    yield* this.#start();
    // Tokens that are no text yet: half a character.
    if (text === '') return;
    const { text: before } = this.#state;
    if (before === '') yield* this.#open();
    this.#state = { ...this.#state, text: before + text };
    yield this.#partEvent('output_text.delta', this.#number(0), { delta: text, logprobs: [] });
  }

  /** A rerun wrote another text. */
  #takeBack(length: number): void {
    this.#state = { ...this.#state, text: this.#state.text.slice(0, length) };
    this.#options.onTakenBack?.();
  }

  *#finish(output: NonNullable<ResponseState['output']>): Generator<ResponseEvent, void> {
    const { text } = this.#state;
    if (text === '') {
      yield* this.#start();
      yield* this.#open();
    }
    this.#state = { ...this.#state, output };
    yield this.#partEvent('output_text.done', this.#number(1), { text, logprobs: [] });
    yield this.#partEvent('content_part.done', this.#number(2), { part: partView(text) });
    const item = messageView(this.#request.id, this.#state);
    yield { type: 'response.output_item.done', sequence_number: this.#number(3), output_index: 0, item };
  }

  *#end(event: RequestEvent): Generator<ResponseEvent, void> {
    const { type, timestampMs } = event;
    const { output } = this.#state;
    if (type === 'succeeded' && output !== undefined) {
      if (textOutputFacts(output).finish_reason === 'length') this.#state = { ...this.#state, status: 'incomplete' };
      else this.#state = { ...this.#state, status: 'completed', completedAtMs: timestampMs };
    } else if (type === 'failed' || type === 'succeeded') this.#fail('failed', 'Nobody knows why.', event.error);
    else if (type === 'expired') this.#fail('request_expired', 'It was not done in its time.');
    else if (type === 'canceled') this.#state = { ...this.#state, status: 'cancelled' };
    else return;
    const { status } = this.#state;
    // There is no event of its own for what was canceled, and nobody should take it for whole.
    yield this.#lifeEvent(status === 'completed' || status === 'incomplete' ? status : 'failed', this.#number(4));
  }

  #fail(code: string, message: string, error = { code, message }): void {
    this.#state = { ...this.#state, status: 'failed', error };
  }

  /** Of the event that is so many after the text. */
  #number(after: number): number {
    return textNumber + this.#state.text.length + after;
  }

  #lifeEvent(name: string, number: number): ResponseEvent {
    return { type: `response.${name}`, sequence_number: number, response: this.response };
  }

  #partEvent(name: string, number: number, data: object): ResponseEvent {
    const item_id = idOf('message', this.#request.id);
    return { type: `response.${name}`, sequence_number: number, item_id, output_index: 0, content_index: 0, ...data };
  }
}

/** What of an event is after a number: a piece of text may be in part. Undefined for none of it. */
export function afterNumber(event: ResponseEvent, number: number): ResponseEvent | undefined {
  const { sequence_number: last, delta } = event;
  if (last <= number) return undefined;
  if (typeof delta !== 'string') return event;
  const known = number - (last - delta.length);
  return known > 0 ? { ...event, delta: delta.slice(known) } : event;
}

/** A log holds so many entries, and an answer of more since it was last made shorter has lost some. */
function textLost(id: string): ApiError {
  const message = `The beginning of the text of ${idOf('response', id)} is no longer kept.`;
  return new ApiError(410, 'text_lost', message);
}
