import { StopMatcher } from './stop-matcher.ts';

/** The bytes of tokens; implemented by text codecs. */
export interface TokenTexts {
  /** Returns the UTF-8 bytes of a token, which may be part of a character. */
  bytesOf(id: number): Uint8Array;
  /** Returns whether a token is a special token, which has no text. */
  isSpecial(id: number): boolean;
}

/** Text that a token adds. */
export interface TokenText {
  /** Complete characters; empty while a character is incomplete or the text may be the prefix of a stop string. */
  readonly text: string;
  /** The stop string that this token completed; the text ends before it. */
  readonly stop?: string;
  /** UTF-16 code units of the characters that the token completed, emitted or held back. */
  readonly units: number;
}

/**
 * Converts tokens to text one by one. The chunks joined are the text of all tokens; no chunk has a partial character or
 * a part of a stop string. Special tokens have no text.
 */
export class IncrementalDetokenizer {
  readonly #tokens: TokenTexts;
  #decoder = new CharacterDecoder();
  #matcher: StopMatcher;

  /** @param stops strings that end the text, none of them empty. */
  constructor(tokens: TokenTexts, stops: readonly string[] = []) {
    this.#tokens = tokens;
    this.#matcher = new StopMatcher(stops);
  }

  /** Takes the next token. Do not call after a stop string was found. */
  push(id: number): TokenText {
    if (this.#tokens.isSpecial(id)) return { text: '', units: 0 };
    const characters = this.#decoder.push(this.#tokens.bytesOf(id));
    return { ...this.#matcher.push(characters), units: characters.length };
  }

  /** Takes placeholder text for a token that is not known yet. */
  pushText(text: string): TokenText {
    this.#decoder = new CharacterDecoder();
    return { ...this.#matcher.push(text), units: text.length };
  }

  /** Ends the text: returns the text held back. Drops an incomplete character. */
  end(): string {
    this.#decoder = new CharacterDecoder();
    return this.#matcher.end();
  }

  /** Returns an independent copy with the same state. */
  clone(): IncrementalDetokenizer {
    const other = new IncrementalDetokenizer(this.#tokens);
    other.#decoder = this.#decoder.clone();
    other.#matcher = this.#matcher.clone();
    return other;
  }
}

/** Decodes chunks of bytes to complete characters. Invalid UTF-8 becomes U+FFFD. */
class CharacterDecoder {
  #incomplete = new Uint8Array(0);

  push(bytes: Uint8Array): string {
    const all = new Uint8Array(this.#incomplete.length + bytes.length);
    all.set(this.#incomplete);
    all.set(bytes, this.#incomplete.length);
    const end = all.length - incompleteBytes(all);
    this.#incomplete = all.slice(end);
    return utf8.decode(all.subarray(0, end));
  }

  clone(): CharacterDecoder {
    const other = new CharacterDecoder();
    other.#incomplete = this.#incomplete;
    return other;
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** Returns the number of bytes at the end that are the prefix of a character. */
function incompleteBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = lengthOf(byte);
    return length > back && isCharacterPrefix(bytes.subarray(bytes.length - back)) ? back : 0;
  }
  return 0;
}

function lengthOf(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

/** Returns whether more bytes can complete a character: false for overlong forms, surrogates and above U+10FFFF. */
function isCharacterPrefix([lead = 0, second]: Uint8Array): boolean {
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  return lead !== 0xf4 || second < 0x90;
}
