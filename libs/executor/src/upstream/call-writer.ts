/** Writes the tool calls of an OpenAI-style answer into its text, in the markup that our own engines use. */
import type { CallMarkup } from '@darkroom/kinds';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import { unavailable } from '../calls/backend-error.ts';

/** A call whose arguments are being received. */
interface OpenCall {
  readonly index: number;
  /** Arguments received so far, trimmed: outer whitespace is not part of the JSON. */
  received: string;
  /** Trailing whitespace, to be inserted if more arguments follow. */
  space: string;
}

/** Turns the chunks of an answer into one text, from which readers parse the calls by the same markup. */
export class CallWriter {
  readonly #markup: CallMarkup | undefined;
  #open: OpenCall | undefined;

  /** @param markup undefined if no tool may be called. */
  constructor(markup: CallMarkup | undefined) {
    this.#markup = markup;
  }

  /**
   * Returns the text that the next chunk adds.
   *
   * @throws UpstreamError `unavailable` if a call follows arguments that are not JSON, since the two could not be
   * separated.
   */
  push(delta: unknown): string {
    const content = textProperty(delta, 'content') ?? '';
    const markup = this.#markup;
    if (markup === undefined) return content;
    const calls = listProperty(delta, 'tool_calls').map((call) => this.#toText(call, markup));
    return (content === '' ? '' : this.#close() + content) + calls.join('');
  }

  /** Returns the text that closes the last call; empty if the call is incomplete. */
  end(): string {
    const call = this.#open;
    return call === undefined || (call.received !== '' && !isObject(call.received)) ? '' : this.#close();
  }

  #toText(toolCall: unknown, { begin, middle, separator = '' }: CallMarkup): string {
    const called = fieldOf(toolCall, 'function');
    const index = numberProperty(toolCall, 'index') ?? 0;
    const name = textProperty(called, 'name') ?? '';
    let text = '';
    if (name !== '' && this.#open?.index !== index) {
      text = (this.#open && this.#close() + separator) ?? '';
      text += begin + name + middle;
      this.#open = { index, received: '', space: '' };
    }
    return text + this.#append(textProperty(called, 'arguments') ?? '');
  }

  #append(chunk: string): string {
    const call = this.#open;
    if (call === undefined) return '';
    const text = call.received === '' ? chunk.trimStart() : call.space + chunk;
    const received = text.trimEnd();
    call.space = text.slice(received.length);
    call.received += received;
    return received;
  }

  #close(): string {
    const call = this.#open;
    this.#open = undefined;
    if (call === undefined || this.#markup === undefined) return '';
    const { end } = this.#markup;
    // A server may omit the arguments of a call without any.
    if (call.received === '') return `{}${end}`;
    if (isObject(call.received)) return end;
    throw unavailable('sent a call whose arguments are not a JSON object, and more after it');
  }
}

function isObject(json: string): boolean {
  try {
    return json.startsWith('{') && typeof JSON.parse(json) === 'object';
  } catch {
    return false;
  }
}
