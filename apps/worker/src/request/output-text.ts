import type { TextPiece } from '@darkroom/core';
import { joinFacts } from './join-facts.ts';

/** Pieces of one output's text after which the log is made one snapshot: what a late reader has to read, or an eighth of all there were. */
const longestLog = 64;

/** A piece of text as it comes from the engine. */
export type SaidPiece = { type: 'delta' | 'snapshot' } & TextPiece;

/**
 * The text of one output as it has been said so far, to be said again as a whole from time to time. The longer it is, the
 * more rarely: what is said again is in all a few times the text.
 */
export class OutputTextLog {
  /** What stays: all before the block that is worked on. */
  #stable: TextPiece = { offset: 0, text: '' };
  /** The last snapshot, in whose place another may come. */
  #block: TextPiece | undefined;
  #entries = 0;
  #allEntries = 0;
  /** An earlier delivery said the beginning, which is not known here. */
  #isPartial = false;

  /** @returns all that stands before the piece and stays, when it should take the place of what was written of it. */
  add({ type, ...piece }: SaidPiece): TextPiece | undefined {
    if (this.#isPartial) return undefined;
    // What stands before the place where the next piece begins is not worked on any more.
    if (this.#block !== undefined && (type === 'delta' || piece.offset > this.#block.offset)) {
      this.#stable = append(this.#stable, this.#block);
      this.#block = undefined;
    }
    const { length } = this.#stable.text;
    this.#isPartial = piece.offset > length;
    if (this.#isPartial) return undefined;
    const whole = this.#isDue() ? this.#stable : undefined;
    if (type === 'delta') this.#stable = append(this.#stable, piece);
    else {
      this.#stable = piece.offset < length ? cut(this.#stable, piece.offset) : this.#stable;
      this.#block = piece;
    }
    return whole;
  }

  /** Counts a piece. Not while the same block is worked on, of which there are few. */
  #isDue(): boolean {
    this.#entries += 1;
    this.#allEntries += 1;
    if (this.#block !== undefined || this.#entries <= Math.max(longestLog, this.#allEntries / 8)) return false;
    this.#entries = 1;
    return true;
  }
}

function append(whole: TextPiece, { offset, text, done, facts: right }: TextPiece): TextPiece {
  const facts = joinFacts(whole.facts, right);
  return {
    offset: 0,
    text: whole.text.slice(0, offset) + text,
    ...(done !== undefined && { done }),
    ...(facts && { facts }),
  };
}

/** Of a beginning nobody knows the facts. */
function cut({ text }: TextPiece, length: number): TextPiece {
  return { offset: 0, text: text.slice(0, length) };
}
