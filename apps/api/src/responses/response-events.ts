/**
 * A request's log as the events of a response, as OpenAI's clients know them.
 *
 * What an event says and its `sequence_number` follow from the log alone, and so are the same from every replica at any time.
 * The log is no stable count of pieces: workers join pieces of text, write some again after a restart, and put one snapshot in the
 * place of many. What is stable is the text, which only grows, and so do the messages and calls that it comes to. So numbers count
 * these: a delta counts its UTF-16 units, any other event counts one. Of an answer without calls:
 *
 * | number | event |
 * | --- | --- |
 * | 0, 1, 2 | `response.created`, `.queued`, `.in_progress` |
 * | 3, 4 | `response.output_item.added`, `response.content_part.added` |
 * | 4 + e | `response.output_text.delta` up to UTF-16 unit e of the text |
 * | 5 + n, 6 + n, 7 + n | `response.output_text.done`, `response.content_part.done`, `response.output_item.done`; n: units of the whole text |
 * | 8 + n | `response.completed`, `.incomplete` or `.failed` |
 *
 * A call has `response.output_item.added`, `response.function_call_arguments.delta`, `.done` and `response.output_item.done` in the
 * same way, and what stands around it in the text counts nothing.
 *
 * A number so says what its reader has: after `4 + e` exactly the first e units. Who resumes after it gets the text from unit e
 * on, whatever pieces it is in by now: nothing is lost, and nothing comes twice. Numbers grow; they jump by the length of each piece,
 * and over events that never come (a response that was canceled in the queue is not in progress first).
 *
 * A rerun may write another text. The same number then stands for either, from where they differ on, so nobody resumes after that.
 */
import type { RequestEvent } from '@darkroom/core';
import { type CallPiece, CallReader, type StoredTextInput, textOutputFacts } from '@darkroom/kinds';
import { createTextReader } from '../openai/text/follow-texts.ts';
import {
  endOfItem,
  type ItemStatus,
  itemView,
  newCall,
  newMessage,
  partView,
  type ResponseItem,
} from './response-items.ts';
import {
  initialState,
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

/** What a response has is `created`, `queued`, `in_progress`; in the end a message has three more events and the response one. */
const startNumber = 2;
const endNumbers = 4;
/** A message that is open has been added, and so has its part. */
const openNumbers = 2;

export interface ResponseReaderOptions {
  /** The number of the last event that was had from another reader; −1 for none. */
  after?: number;
  /** Called when something that was said, or may have been up to `after`, stays no longer; what it throws `read` throws. */
  onTakenBack?: () => void;
}

/** Follows a request's log from its first entry on, entries that were read before too. */
export class ResponseReader {
  readonly #request: StoredResponse;
  readonly #options: ResponseReaderOptions;
  readonly #itemsOf: ReturnType<typeof createTextReader>;
  #calls: CallReader | undefined;
  #state: ResponseState = initialState;
  /** The text, calls and all. */
  #raw = '';
  #hasBegun = false;
  /** Of the last event after `in_progress`. */
  #number = startNumber;

  constructor(request: StoredResponse, options: ResponseReaderOptions = {}) {
    this.#request = request;
    this.#options = options;
    this.#itemsOf = createTextReader(request.id);
    this.#calls = callReaderOf(request);
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
    if (event.type === 'snapshot') this.#checkResumed(event);
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
    yield this.#lifeEvent('in_progress', startNumber);
  }

  *#add(text: string): Generator<ResponseEvent, void> {
    yield* this.#start();
    // Tokens that are no text yet: half a character.
    if (text === '') return;
    this.#raw += text;
    this.#state = { ...this.#state, length: this.#raw.length };
    const pieces: CallPiece[] = this.#calls === undefined ? [{ type: 'text', text }] : this.#calls.push(text);
    for (const piece of pieces) yield* this.#tell(piece);
  }

  *#tell(piece: CallPiece): Generator<ResponseEvent, void> {
    const { id } = this.#request;
    switch (piece.type) {
      case 'text':
        return yield* this.#addText(piece.text);
      case 'call':
        yield* this.#close('completed');
        return yield* this.#open(newCall(id, piece.call, piece.name));
      case 'arguments':
        return yield* this.#grow(piece.text);
      case 'called':
        return yield* this.#close('completed');
    }
  }

  *#addText(text: string): Generator<ResponseEvent, void> {
    if (this.#last?.type === 'message') return yield* this.#grow(text);
    const { items } = this.#state;
    yield* this.#open(newMessage(this.#request.id, items.length));
    // Of an answer that is one text, what follows a call is a line of its own; here it is a message of its own.
    yield* this.#grow(items.length > 0 ? text.replace(/^\n/, '') : text);
  }

  get #last(): ResponseItem | undefined {
    return this.#state.items.at(-1);
  }

  #setLast(item: ResponseItem): void {
    this.#state = { ...this.#state, items: [...this.#state.items.slice(0, -1), item] };
  }

  *#open(item: ResponseItem): Generator<ResponseEvent, void> {
    this.#state = { ...this.#state, items: [...this.#state.items, item] };
    const view = itemView(item, false);
    const added = view.type === 'message' ? { ...view, content: [] } : view;
    yield this.#outputEvent('output_item.added', { item: added });
    if (item.type === 'message') yield this.#itemEvent('content_part.added', { part: partView('') });
  }

  *#grow(piece: string): Generator<ResponseEvent, void> {
    const last = this.#last!;
    if (last.type === 'message') {
      this.#setLast({ ...last, text: last.text + piece });
      yield this.#itemEvent('output_text.delta', { delta: piece, logprobs: [] }, piece.length);
    } else {
      this.#setLast({ ...last, arguments: last.arguments + piece });
      yield this.#itemEvent('function_call_arguments.delta', { delta: piece }, piece.length);
    }
  }

  /** The last item is whole, or is not going to be. */
  *#close(status: ItemStatus): Generator<ResponseEvent, void> {
    const last = this.#last;
    if (last?.status !== 'in_progress') return;
    this.#setLast({ ...last, status });
    if (last.type === 'message') {
      yield this.#itemEvent('output_text.done', { text: last.text, logprobs: [] });
      yield this.#itemEvent('content_part.done', { part: partView(last.text) });
    } else yield this.#itemEvent('function_call_arguments.done', { name: last.name, arguments: last.arguments });
    yield this.#outputEvent('output_item.done', { item: itemView(this.#last!, false) });
  }

  /** A rerun wrote another text. What stays may end within a call or its markup: all of it is read anew. */
  #takeBack(length: number): void {
    const told = Math.max(this.#number, this.#options.after ?? -1);
    const kept = this.#raw.slice(0, length);
    this.#raw = '';
    this.#calls = callReaderOf(this.#request);
    this.#number = startNumber;
    this.#state = { ...this.#state, items: [], length: 0 };
    Array.from(this.#add(kept));
    // What was held back as the beginning of a call was told to nobody.
    if (told > this.#number) this.#options.onTakenBack?.();
  }

  /** What a rerun took back is not in the log any more. Who has had more than what stayed may have had that. */
  #checkResumed({ text, changedFrom }: Extract<RequestEvent, { type: 'delta' | 'snapshot' }>): void {
    const { after = -1, onTakenBack } = this.#options;
    // Who has read on has compared it.
    if (changedFrom === undefined || this.#raw.length > changedFrom) return;
    const stayed = new ResponseReader(this.#request);
    Array.from(stayed.#add(text.slice(0, changedFrom)));
    if (after > stayed.#number) onTakenBack?.();
  }

  *#finish(output: NonNullable<ResponseState['output']>): Generator<ResponseEvent, void> {
    yield* this.#start();
    for (const piece of this.#calls?.end() ?? []) yield* this.#tell(piece);
    if (this.#last === undefined) yield* this.#open(newMessage(this.#request.id, 0));
    this.#state = { ...this.#state, output };
    yield* this.#close(endOfItem(textOutputFacts(output)));
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
    // The same number whether a message has come to its end or not.
    const unfinished = this.#last === undefined ? openNumbers + endNumbers : endNumbers;
    this.#number += output === undefined ? unfinished : 1;
    // There is no event of its own for what was canceled, and nobody should take it for whole.
    yield this.#lifeEvent(status === 'completed' || status === 'incomplete' ? status : 'failed', this.#number);
  }

  #fail(code: string, message: string, error = { code, message }): void {
    this.#state = { ...this.#state, status: 'failed', error };
  }

  #lifeEvent(name: string, number: number): ResponseEvent {
    return { type: `response.${name}`, sequence_number: number, response: this.response };
  }

  /** About the last item. */
  #outputEvent(name: string, data: object, counts = 1): ResponseEvent {
    this.#number += counts;
    const output_index = this.#state.items.length - 1;
    return { type: `response.${name}`, sequence_number: this.#number, output_index, ...data };
  }

  /** About what is in the last item. */
  #itemEvent(name: string, data: object, counts = 1): ResponseEvent {
    const { id, type } = this.#last!;
    const place = { item_id: id, ...(type === 'message' && { content_index: 0 }) };
    return this.#outputEvent(name, { ...place, ...data }, counts);
  }
}

function callReaderOf({ input }: StoredResponse): CallReader | undefined {
  const { callMarkup } = input as StoredTextInput;
  return callMarkup && new CallReader(callMarkup);
}

/** What of an event is after a number: a piece of text may be in part. Undefined for none of it. */
export function afterNumber(event: ResponseEvent, number: number): ResponseEvent | undefined {
  const { sequence_number: last, delta } = event;
  if (last <= number) return undefined;
  if (typeof delta !== 'string') return event;
  const known = number - (last - delta.length);
  return known > 0 ? { ...event, delta: delta.slice(known) } : event;
}
