import { type CallMarkup, triggerOf } from './call-markup.ts';

/** What a piece of an answer comes to. Calls are numbered from 0 on. */
export type CallPiece =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'call'; readonly call: number; readonly name: string }
  /** Of the arguments of the last call, which are JSON once they are joined. */
  | { readonly type: 'arguments'; readonly call: number; readonly text: string }
  /** The arguments of the last call are whole. */
  | { readonly type: 'called'; readonly call: number };

/** A call of a tool. */
export interface ToolCall {
  readonly name: string;
  /** JSON; the beginning of it where the answer was cut. */
  readonly arguments: string;
}

type State = 'text' | 'name' | 'arguments' | 'end' | 'next';

/**
 * Takes calls of tools out of a text while it is written. No part of a call's markup comes as text, nor space around calls; what may
 * be the beginning of a call is held back until it is known, and what was none comes as text; text that goes on after a call, on a line of
 * its own. What comes of a text does not depend on
 * where it was cut into pieces, but for the borders of what comes.
 */
export class CallReader {
  readonly #markup: CallMarkup;
  readonly #head: string;
  #state: State = 'text';
  /** Not told by now. */
  #rest = '';
  /** What stood before the name that is read, from the end of the text on. */
  #taken = '';
  #calls = 0;
  /** Whether nothing but space came since the last call. */
  #isAfterCall = false;
  #hasText = false;
  #json = startJson();

  constructor(markup: CallMarkup) {
    this.#markup = markup;
    this.#head = markup.open + markup.begin;
  }

  /** How many calls there are by now. */
  get calls(): number {
    return this.#calls;
  }

  /** Takes the next piece of the text. */
  push(piece: string): CallPiece[] {
    this.#rest += piece;
    const pieces: CallPiece[] = [];
    while (this.#step(pieces));
    return pieces;
  }

  /** The text has ended. A call that was cut before its arguments is none, and no text either. */
  end(): CallPiece[] {
    const rest = this.#rest;
    this.#rest = '';
    const isText = this.#state === 'text' || (this.#state === 'next' && this.#markup.open === '');
    if (!isText || rest.trimStart().startsWith(triggerOf(this.#markup))) return [];
    return this.#textOf(rest);
  }

  /** Whether there may be more to tell of what is there. */
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
    const told = rest.slice(0, rest.length - overlap(rest, this.#head)).trimEnd();
    pieces.push(...this.#textOf(told));
    this.#rest = rest.slice(told.length);
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
    pieces.push(...this.#textOf(this.#taken));
    return this.#go('text', 0);
  }

  #readArguments(pieces: CallPiece[]): boolean {
    const rest = this.#rest;
    const { length, isWhole } = this.#json(rest);
    const call = this.#calls - 1;
    if (length > 0) pieces.push({ type: 'arguments', call, text: rest.slice(0, length) });
    if (isWhole) pieces.push({ type: 'called', call });
    this.#go(isWhole ? 'end' : 'arguments', length);
    return isWhole;
  }

  /** After a call: another one, or the end of the list. */
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
    // What else stands there is text.
    return !mark.startsWith(this.#rest) && this.#go('text', 0);
  }

  #takeHead(length: number): true {
    this.#taken = this.#rest.slice(0, length);
    return this.#go('name', length);
  }

  #go(state: State, length: number): true {
    this.#state = state;
    this.#rest = this.#rest.slice(length);
    return true;
  }

  #textOf(text: string): CallPiece[] {
    const told = this.#isAfterCall ? text.trimStart() : text;
    if (told === '') return [];
    const goesOn = this.#isAfterCall && this.#hasText;
    this.#isAfterCall = false;
    this.#hasText = true;
    return [{ type: 'text', text: goesOn ? `\n${told}` : told }];
  }
}

/** The calls in a text, and what else it says. */
export function readCalls(markup: CallMarkup, text: string): { text: string; calls: ToolCall[] } {
  const reader = new CallReader(markup);
  const told: string[] = [];
  const calls: { name: string; arguments: string }[] = [];
  for (const piece of [...reader.push(text), ...reader.end()])
    if (piece.type === 'text') told.push(piece.text);
    else if (piece.type === 'call') calls.push({ name: piece.name, arguments: '' });
    else if (piece.type === 'arguments') calls[piece.call]!.arguments += piece.text;
  return { text: told.join(''), calls };
}

/** How much of the end of a text is a beginning of `mark`. */
function overlap(text: string, mark: string): number {
  let length = Math.min(text.length, mark.length - 1);
  while (length > 0 && !mark.startsWith(text.slice(text.length - length))) length -= 1;
  return length;
}

/** Reads an object of JSON in pieces: how much of a piece belongs to it, and whether it ends there. */
function startJson(): (piece: string) => { length: number; isWhole: boolean } {
  let depth = 0;
  let isText = false;
  let isEscaped = false;
  return (piece) => {
    for (let at = 0; at < piece.length; at++) {
      const unit = piece[at]!;
      if (isEscaped) isEscaped = false;
      else if (isText) {
        if (unit === '"') isText = false;
        else if (unit === '\\') isEscaped = true;
      } else if (unit === '"') isText = true;
      else if (unit === '{' || unit === '[') depth += 1;
      else if ((unit === '}' || unit === ']') && --depth === 0) return { length: at + 1, isWhole: true };
    }
    return { length: piece.length, isWhole: false };
  };
}
