/** Calls of tools that a server tells beside its text, written into the text as our own engines have them there. */
import type { CallMarkup } from '@darkroom/kinds';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { unavailable } from './upstream-error.ts';

/** A call whose arguments are being told. */
interface OpenCall {
  readonly index: number;
  /** By now, without space at both ends: none of it belongs to JSON. */
  told: string;
  /** Space that stands in them if more comes. */
  space: string;
}

/** Makes one text of the pieces of an answer, for readers who take the calls out again by the same markup. */
export class CallWriter {
  readonly #markup: CallMarkup | undefined;
  #open: OpenCall | undefined;

  /** @param markup undefined where no tool may be called. */
  constructor(markup: CallMarkup | undefined) {
    this.#markup = markup;
  }

  /**
   * What the next piece adds to the text.
   *
   * @throws UpstreamError `unavailable` if a call follows on arguments that are no JSON: none could be told from the other.
   */
  push(delta: unknown): string {
    const content = textOf(delta, 'content') ?? '';
    const markup = this.#markup;
    if (markup === undefined) return content;
    const calls = listOf(delta, 'tool_calls').map((call) => this.#piece(call, markup));
    return (content === '' ? '' : this.#close() + content) + calls.join('');
  }

  /** What closes the last call, unless it was cut. */
  end(): string {
    const call = this.#open;
    return call === undefined || (call.told !== '' && !isObject(call.told)) ? '' : this.#close();
  }

  #piece(said: unknown, { begin, middle, separator = '' }: CallMarkup): string {
    const called = fieldOf(said, 'function');
    const index = numberOf(said, 'index') ?? 0;
    const name = textOf(called, 'name') ?? '';
    let text = '';
    if (name !== '' && this.#open?.index !== index) {
      text = (this.#open && this.#close() + separator) ?? '';
      text += begin + name + middle;
      this.#open = { index, told: '', space: '' };
    }
    return text + this.#tell(textOf(called, 'arguments') ?? '');
  }

  #tell(piece: string): string {
    const call = this.#open;
    if (call === undefined) return '';
    const text = call.told === '' ? piece.trimStart() : call.space + piece;
    const told = text.trimEnd();
    call.space = text.slice(told.length);
    call.told += told;
    return told;
  }

  #close(): string {
    const call = this.#open;
    this.#open = undefined;
    if (call === undefined || this.#markup === undefined) return '';
    const { end } = this.#markup;
    // Who has nothing to say may say nothing.
    if (call.told === '') return `{}${end}`;
    if (isObject(call.told)) return end;
    throw unavailable('sent a call whose arguments are no object of JSON, and more after it');
  }
}

function isObject(json: string): boolean {
  try {
    return json.startsWith('{') && typeof JSON.parse(json) === 'object';
  } catch {
    return false;
  }
}
