/**
 * Converts the log of a request to OpenAI's response events.
 *
 * An event and its `sequence_number` depend only on the log, so they are the same on every replica at any time. Chunks
 * cannot be counted: workers join them, write them again after a restart and compact the log. The text only grows, so a
 * delta counts its UTF-16 code units, any other event counts one. Numbers of an answer of n code units without calls:
 *
 * | number | event |
 * | --- | --- |
 * | 0, 1, 2 | `response.created`, `.queued` (in the background only), `.in_progress` |
 * | 3, 4 | `response.output_item.added`, `response.content_part.added` |
 * | 4 + e | `response.output_text.delta` up to code unit e of the text |
 * | 5 + n, 6 + n, 7 + n | `response.output_text.done`, `response.content_part.done`, `response.output_item.done` |
 * | 8 + n | `response.completed`, `.incomplete` or `.failed` |
 *
 * A call counts `response.output_item.added`, `response.function_call_arguments.delta` and `.done` and
 * `response.output_item.done` in the same way; its markup is not counted. A client that has event `4 + e` has exactly e
 * code units, so resuming after it neither loses nor repeats text. Numbers skip events that never occur, such as
 * `in_progress` of a response that was canceled in the queue.
 *
 * If a rerun writes a different text, numbers beyond the first difference are ambiguous: no stream resumes after them.
 */
import { pairUp } from '@darkroom/core';
import type { StoredEvent } from '@darkroom/core';
import { type CallPiece, CallReader, type StoredTextInput, textOutputFacts, type TokenLogprob } from '@darkroom/kinds';
import { createTextFollower } from '../openai/text/follow-texts.ts';
import { textOffsetsOf, tokensOf } from '../openai/text/text-shape.ts';
import {
  endOfItem,
  type ItemStatus,
  itemView,
  logprobViews,
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
  shownOf,
  type StoredResponse,
} from './response-view.ts';

export interface ResponseEvent {
  type: `response.${string}`;
  sequence_number: number;
  [field: string]: unknown;
}

/** Number of `in_progress`; and events at the end: three of the message, one of the response. */
const startNumber = 2;
const endNumbers = 4;
/** Events that open a message: `output_item.added` and `content_part.added`. */
const openNumbers = 2;

export interface ResponseReaderOptions {
  /** Number of the last event that the client received from an earlier reader; −1 for none. */
  after?: number;
  /** Called when a rerun retracts text that was emitted, or may have been up to `after`. `read` rethrows its errors. */
  onRetracted?: () => void;
}

/** Reads a request's log from its first entry. Entries may be read again. */
export class ResponseReader {
  readonly #request: StoredResponse;
  readonly #options: ResponseReaderOptions;
  readonly #itemsOf: ReturnType<typeof createTextFollower>;
  #calls: CallReader | undefined;
  #state: ResponseState = initialState;
  /** The text with the markup of calls. */
  #raw = '';
  /** Tokens of `#raw`; `#pendingTokens` are those since the last delta of a message. */
  #tokens: TokenLogprob[] = [];
  #pendingTokens: TokenLogprob[] = [];
  #hasBegun = false;
  /** Number of the last event from `in_progress` on. */
  #number = startNumber;

  constructor(request: StoredResponse, options: ResponseReaderOptions = {}) {
    this.#request = request;
    this.#options = options;
    this.#itemsOf = createTextFollower(request.id);
    this.#calls = callReaderOf(request);
  }

  /** The current state of the response. */
  get response(): ResponseView {
    return responseView(this.#request, this.#state);
  }

  get state(): Readonly<ResponseState> {
    return this.#state;
  }

  get hasEnded(): boolean {
    return this.#state.status !== 'queued' && this.#state.status !== 'in_progress';
  }

  /** Returns the events of a log entry. Throws 410 if the log was trimmed before unread text. */
  read(event: StoredEvent): ResponseEvent[] {
    return [...this.#eventsOf(event)];
  }

  *#eventsOf(event: StoredEvent): Generator<ResponseEvent, void> {
    if (this.hasEnded) return;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      yield this.#lifeEvent('created', 0);
      // As in OpenAI's API, `in_progress` is the second event in the foreground.
      if (shownOf(this.#request)?.background === true) yield this.#lifeEvent('queued', 1);
    }
    if (event.type === 'started') yield* this.#start();
    if (event.type === 'snapshot') this.#checkCompacted(event);
    for (const item of this.#itemsOf(event)) {
      // Items of type `block` are skipped: an unfinished block is not final.
      if (item.type === 'added') yield* this.#add(item.text, tokensOf(this.#request, item));
      else if (item.type === 'taken-back') this.#retract(item.length);
      else if (item.type === 'finished') yield* this.#finish(item.output);
    }
    yield* this.#end(event);
  }

  *#start(): Generator<ResponseEvent, void> {
    // A requeued request starts again.
    if (this.#state.status === 'in_progress') return;
    this.#state = { ...this.#state, status: 'in_progress' };
    yield this.#lifeEvent('in_progress', startNumber);
  }

  *#add(text: string, tokens: readonly TokenLogprob[] = []): Generator<ResponseEvent, void> {
    yield* this.#start();
    this.#tokens.push(...tokens);
    this.#pendingTokens.push(...tokens);
    // Tokens without text yet, such as half a character.
    if (text === '') return;
    this.#raw += text;
    this.#state = { ...this.#state, length: this.#raw.length };
    const pieces: CallPiece[] = this.#calls === undefined ? [{ type: 'text', text }] : this.#calls.push(text);
    for (const piece of pieces) yield* this.#emitPiece(piece);
  }

  *#emitPiece(piece: CallPiece): Generator<ResponseEvent, void> {
    const { id } = this.#request;
    switch (piece.type) {
      case 'text':
        return yield* this.#addText(piece.text);
      case 'call':
        this.#pendingTokens = [];
        yield* this.#close('completed');
        return yield* this.#open(newCall(id, piece.call, piece.name));
      case 'arguments':
        return yield* this.#append(piece.text);
      case 'called':
        return yield* this.#close('completed');
    }
  }

  *#addText(text: string): Generator<ResponseEvent, void> {
    if (this.#lastItem?.type === 'message') return yield* this.#append(text);
    const { items } = this.#state;
    yield* this.#open(newMessage(this.#request.id, items.length));
    // The line break after a call separates it from the text that follows. Here that text is a separate message.
    yield* this.#append(items.length > 0 ? text.replace(/^\n/, '') : text);
  }

  get #lastItem(): ResponseItem | undefined {
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

  *#append(piece: string): Generator<ResponseEvent, void> {
    const last = this.#lastItem!;
    if (last.type === 'message') {
      const tokens = this.#pendingTokens;
      this.#pendingTokens = [];
      this.#setLast({ ...last, text: last.text + piece, tokens: [...last.tokens, ...tokens] });
      yield this.#itemEvent('output_text.delta', { delta: piece, logprobs: logprobViews(tokens) }, piece.length);
    } else {
      this.#setLast({ ...last, arguments: last.arguments + piece });
      yield this.#itemEvent('function_call_arguments.delta', { delta: piece }, piece.length);
    }
  }

  /** Ends the last item, complete or not. */
  *#close(status: ItemStatus): Generator<ResponseEvent, void> {
    const last = this.#lastItem;
    if (last?.status !== 'in_progress') return;
    this.#setLast({ ...last, status });
    if (last.type === 'message') {
      const part = partView(last.text, last.tokens);
      yield this.#itemEvent('output_text.done', { text: last.text, logprobs: part.logprobs });
      yield this.#itemEvent('content_part.done', { part });
    } else yield this.#itemEvent('function_call_arguments.done', { name: last.name, arguments: last.arguments });
    yield this.#outputEvent('output_item.done', { item: itemView(this.#lastItem!, false) });
  }

  /** Handles a retraction. Parses the remaining text again, because it may end within a call or its markup. */
  #retract(length: number): void {
    const emitted = Math.max(this.#number, this.#options.after ?? -1);
    const remainingText = this.#raw.slice(0, length);
    const offsets = textOffsetsOf(this.#tokens, this.#raw);
    const tokens = pairUp(this.#tokens, offsets).flatMap(([token, offset]) => (offset < length ? [token] : []));
    [this.#raw, this.#tokens, this.#pendingTokens] = ['', [], []];
    this.#calls = callReaderOf(this.#request);
    this.#number = startNumber;
    this.#state = { ...this.#state, items: [], length: 0 };
    Array.from(this.#add(remainingText, tokens));
    // Text that was held back as a possible call was never emitted, so its retraction is harmless.
    if (emitted > this.#number) this.#options.onRetracted?.();
  }

  /** Checks a compacted log, which lacks retracted text: a client beyond `changedFrom` may have received that text. */
  #checkCompacted({ text, changedFrom }: Extract<StoredEvent, { type: 'delta' | 'snapshot' }>): void {
    const { after = -1, onRetracted } = this.#options;
    // If this reader has read beyond that point, it has compared the texts itself.
    if (changedFrom === undefined || this.#raw.length > changedFrom) return;
    const remaining = new ResponseReader(this.#request);
    Array.from(remaining.#add(text.slice(0, changedFrom)));
    if (after > remaining.#number) onRetracted?.();
  }

  *#finish(output: NonNullable<ResponseState['output']>): Generator<ResponseEvent, void> {
    yield* this.#start();
    for (const piece of this.#calls?.end() ?? []) yield* this.#emitPiece(piece);
    if (this.#lastItem === undefined) yield* this.#open(newMessage(this.#request.id, 0));
    this.#state = { ...this.#state, output };
    yield* this.#close(endOfItem(textOutputFacts(output)));
  }

  *#end(event: StoredEvent): Generator<ResponseEvent, void> {
    const { type, timestampMs } = event;
    const { output } = this.#state;
    if (type === 'succeeded' && output !== undefined) {
      if (textOutputFacts(output).finish_reason === 'length') this.#state = { ...this.#state, status: 'incomplete' };
      else this.#state = { ...this.#state, status: 'completed', completedAtMs: timestampMs };
    } else if (type === 'failed' || type === 'succeeded') this.#fail('failed', 'The cause is unknown.', event.error);
    else if (type === 'expired') this.#fail('request_expired', 'The request expired before it was done.');
    else if (type === 'canceled') this.#state = { ...this.#state, status: 'cancelled' };
    else return;
    const { status } = this.#state;
    // The last event has the same number whether or not a message has ended.
    const unfinished = this.#lastItem === undefined ? openNumbers + endNumbers : endNumbers;
    this.#number += output === undefined ? unfinished : 1;
    // OpenAI has no event for canceled responses. Send `failed`, so that clients do not take the text as complete.
    yield this.#lifeEvent(status === 'completed' || status === 'incomplete' ? status : 'failed', this.#number);
  }

  #fail(code: string, message: string, error = { code, message }): void {
    this.#state = { ...this.#state, status: 'failed', error };
  }

  #lifeEvent(name: string, number: number): ResponseEvent {
    return { type: `response.${name}`, sequence_number: number, response: this.response };
  }

  /** Creates an event of the last item. */
  #outputEvent(name: string, data: object, counts = 1): ResponseEvent {
    this.#number += counts;
    const output_index = this.#state.items.length - 1;
    return { type: `response.${name}`, sequence_number: this.#number, output_index, ...data };
  }

  /** Creates an event of the content of the last item. */
  #itemEvent(name: string, data: object, counts = 1): ResponseEvent {
    const { id, type } = this.#lastItem!;
    const place = { item_id: id, ...(type === 'message' && { content_index: 0 }) };
    return this.#outputEvent(name, { ...place, ...data }, counts);
  }
}

function callReaderOf({ input }: StoredResponse): CallReader | undefined {
  const { callMarkup } = input as StoredTextInput;
  return callMarkup && new CallReader(callMarkup);
}
