import { itemAt } from '@darkroom/core';
import { type CallMarkup, triggerOf } from './call-markup.ts';

/** A part of an answer. Calls are numbered from 0. */
export type CallPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly call: number; readonly name: string }
  /** A part of the last call's arguments; joined, they are JSON. */
  | { readonly type: 'arguments'; readonly call: number; readonly text: string }
  /** The arguments of the last call are complete. */
  | { readonly type: 'called'; readonly call: number };

/** A tool call. */
export interface ParsedToolCall {
  readonly name: string;
  /** JSON; incomplete if the answer was cut. */
  readonly arguments: string;
}

type State = 'text' | 'name' | 'arguments' | 'end' | 'next';

/**
 * Separates tool calls from a text while it is generated. Holds back a possible start of a call; drops the markup and
 * the space around calls. Text after a call starts on a new line. The result does not depend on the chunks.
 */
export class CallReader {
  readonly #markup: CallMarkup;
  readonly #head: string;
  #state: State = 'text';
  /** Text that was not emitted yet. */
  #rest = '';
  /** Markup before the current name; emitted as text if the call is a false start. */
  #heldMarkup = '';
  #calls = 0;
  /** True while only space has followed the last call. */
  #isAfterCall = false;
  #hasText = false;
  #json = startJson();

  constructor(markup: CallMarkup) {
    this.#markup = markup;
    this.#head = markup.open + markup.begin;
  }

  /** Number of calls so far. */
  get calls(): number {
    return this.#calls;
  }

  /** Takes the next chunk of the text. */
  push(piece: string): CallPiece[] {
    this.#rest += piece;
    const pieces: CallPiece[] = [];
    while (this.#step(pieces));
    return pieces;
  }

  /** Ends the text. Drops a call that was cut before its arguments. */
  end(): CallPiece[] {
    const rest = this.#rest;
    this.#rest = '';
    const isText = this.#state === 'text' || (this.#state === 'next' && this.#markup.open === '');
    if (!isText || rest.trimStart().startsWith(triggerOf(this.#markup))) return [];
    return this.#textOf(rest);
  }

  /** Takes one step; returns whether another step may be possible without more text. */
  #step(pieces: CallPiece[]): boolean {
    switch (this.#state) {
      case 'text':
        return this.#readText(pieces);
      case 'name':
        return this.#readName(pieces);
      case 'arguments':
        return this.#readArguments(pieces);
      case 'end':
        return this.#readMark(this.#markup.end, 'next');
      case 'next':
        return this.#readNext();
    }
  }

  #readText(pieces: CallPiece[]): boolean {
    const rest = this.#rest;
    const at = rest.indexOf(this.#head);
    if (at >= 0) {
      const before = rest.slice(0, at).trimEnd();
      pieces.push(...this.#textOf(before));
      this.#rest = rest.slice(before.length);
      return this.#takeHead(this.#rest.indexOf(this.#head) + this.#head.length);
    }
    const emitted = rest.slice(0, rest.length - overlap(rest, this.#head)).trimEnd();
    pieces.push(...this.#textOf(emitted));
    this.#rest = rest.slice(emitted.length);
    return false;
  }

  #readName(pieces: CallPiece[]): boolean {
    const { middle } = this.#markup;
    const [name = ''] = /^[\w-]{0,65}/.exec(this.#rest) ?? [];
    const tail = this.#rest.slice(name.length, name.length + middle.length + 1);
    if (tail.length <= middle.length && middle.startsWith(tail) && name.length <= 64) return false;
    if (name !== '' && name.length <= 64 && tail === `${middle}{`) {
      pieces.push({ type: 'call', call: this.#calls, name });
      this.#calls += 1;
      this.#json = startJson();
      return this.#go('arguments', name.length + middle.length);
    }
    pieces.push(...this.#textOf(this.#heldMarkup));
    return this.#go('text', 0);
  }

  #readArguments(pieces: CallPiece[]): boolean {
    const rest = this.#rest;
    const { length, isComplete } = this.#json(rest);
    const call = this.#calls - 1;
    if (length > 0) pieces.push({ type: 'arguments', call, text: rest.slice(0, length) });
    if (isComplete) pieces.push({ type: 'called', call });
    this.#go(isComplete ? 'end' : 'arguments', length);
    return isComplete;
  }

  /** Reads what follows a call: another call, or the end of the list. */
  #readNext(): boolean {
    const { begin, separator, close } = this.#markup;
    const next = separator === undefined ? undefined : separator + begin;
    if (next !== undefined && this.#rest.startsWith(next)) return this.#takeHead(next.length);
    if (next?.startsWith(this.#rest) === true) return false;
    return this.#readMark(close, 'text');
  }

  #readMark(mark: string, after: State): boolean {
    this.#isAfterCall = true;
    if (this.#rest.startsWith(mark)) return this.#go(after, mark.length);
    // Anything else is text.
    return !mark.startsWith(this.#rest) && this.#go('text', 0);
  }

  #takeHead(length: number): true {
    this.#heldMarkup = this.#rest.slice(0, length);
    return this.#go('name', length);
  }

  #go(state: State, length: number): true {
    this.#state = state;
    this.#rest = this.#rest.slice(length);
    return true;
  }

  #textOf(text: string): CallPiece[] {
    const emitted = this.#isAfterCall ? text.trimStart() : text;
    if (emitted === '') return [];
    const goesOn = this.#isAfterCall && this.#hasText;
    this.#isAfterCall = false;
    this.#hasText = true;
    return [{ type: 'text', text: goesOn ? `\n${emitted}` : emitted }];
  }
}

/** Returns the calls in a complete text, and the rest of the text. */
export function readCalls(markup: CallMarkup, text: string): { text: string; calls: ParsedToolCall[] } {
  const reader = new CallReader(markup);
  const emitted: string[] = [];
  const calls: { name: string; arguments: string }[] = [];
  // Arguments follow their call.
  for (const piece of [...reader.push(text), ...reader.end()])
    if (piece.type === 'text') emitted.push(piece.text);
    else if (piece.type === 'call') calls.push({ name: piece.name, arguments: '' });
    else if (piece.type === 'arguments') itemAt(calls, piece.call).arguments += piece.text;
  return { text: emitted.join(''), calls };
}

/** Returns the length of the longest end of a text that is a prefix of `mark`. */
function overlap(text: string, mark: string): number {
  let length = Math.min(text.length, mark.length - 1);
  while (length > 0 && !mark.startsWith(text.slice(text.length - length))) length -= 1;
  return length;
}

/** Returns a reader of a chunked JSON object: how much of a chunk belongs to the object, and whether it ends there. */
function startJson(): (piece: string) => { length: number; isComplete: boolean } {
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  return (piece) => {
    for (let at = 0; at < piece.length; at++) {
      const unit = piece.charAt(at);
      if (isEscaped) isEscaped = false;
      else if (isText) {
        if (unit === '"') isText = false;
        else if (unit === '\\') isEscaped = true;
      } else if (unit === '"') isText = true;
      else if (unit === '{' || unit === '[') depth += 1;
      else if ((unit === '}' || unit === ']') && --depth === 0) return { length: at + 1, isComplete: true };
    }
    return { length: piece.length, isComplete: false };
  };
}
