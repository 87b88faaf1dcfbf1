import { StopMatcher } from './stop-matcher.ts';

/** What is known of each token; a codec is one of these. */
export interface TokenTexts {
  /** What a token stands for, as UTF-8: perhaps a part of a character. */
  bytesOf(id: number): Uint8Array;
  /** Whether it is a mark that has no text of its own. */
  isSpecial(id: number): boolean;
}

/** What a token has added to a text. */
export interface TokenText {
  /** Whole characters; empty while one is not complete, or while they may be the beginning of a stop text. */
  readonly text: string;
  /** The stop text that this token completed; the text ends before it. */
  readonly stop?: string;
  /** UTF-16 code units of the characters that it completed, said or held back. */
  readonly units: number;
}

/**
 * Turns tokens into text one by one. Joined, the pieces are the text of all tokens; none of them has half a character, nor
 * a part of a stop text. Special tokens have no text.
 */
export class IncrementalDetokenizer {
  readonly #tokens: TokenTexts;
  #decoder = new CharacterDecoder();
  #matcher: StopMatcher;

  /** @param stops that end the text, none of them empty. */
  constructor(tokens: TokenTexts, stops: readonly string[] = []) {
    this.#tokens = tokens;
    this.#matcher = new StopMatcher(stops);
  }

  /** Takes the next token. After a stop text none is to be given. */
  push(id: number): TokenText {
    if (this.#tokens.isSpecial(id)) return { text: '', units: 0 };
    const characters = this.#decoder.push(this.#tokens.bytesOf(id));
    return { ...this.#matcher.push(characters), units: characters.length };
  }

  /** Takes text that stands for a token which is not known yet. */
  pushText(text: string): TokenText {
    this.#decoder = new CharacterDecoder();
    return { ...this.#matcher.push(text), units: text.length };
  }

  /** The text has ended: gives what was held back. Of a character that never was completed nothing is left. */
  end(): string {
    this.#decoder = new CharacterDecoder();
    return this.#matcher.end();
  }

  /** One that stands where this one does. */
  clone(): IncrementalDetokenizer {
    const other = new IncrementalDetokenizer(this.#tokens);
    other.#decoder = this.#decoder.clone();
    other.#matcher = this.#matcher.clone();
    return other;
  }
}

/** Whole characters of bytes that come in pieces. What is no UTF-8 becomes U+FFFD, as everywhere. */
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

/** Bytes at the end that are the beginning of a character. */
function incompleteBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0b1100_0000) === 0b1000_0000) continue;
    const length = lengthOf(byte);
    return length > back && isBeginning(bytes.subarray(bytes.length - back)) ? back : 0;
  }
  return 0;
}

function lengthOf(lead: number): number {
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

/** Whether more bytes can make a character of these: not of an overlong form, a surrogate, or one above U+10FFFF. */
function isBeginning([lead = 0, second]: Uint8Array): boolean {
  if (second === undefined) return true;
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  return lead !== 0xf4 || second < 0x90;
}
