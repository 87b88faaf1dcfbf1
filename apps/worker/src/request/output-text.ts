import type { ChangedText, TextEvent, TextPiece } from '@darkroom/core';
import { joinFacts } from './join-facts.ts';

/** Pieces of one output's text after which the log is made one snapshot: what a late reader has to read, or an eighth of all there were. */
const longestLog = 64;

/** A piece of text as it comes from the engine. */
export type SaidPiece = { type: 'delta' | 'snapshot' } & TextPiece;

type WholeText = TextPiece & ChangedText;

/** What is to be written beside a piece of text. */
export interface TextNotes {
  /** Before it: from here on it says something else than what stands, which a rerun may do. `whole` is there then. */
  differsFrom?: number;
  /** Before it: all that stands before it and stays, in place of what was written of it. Who comes later never reads what was taken back. */
  whole?: WholeText;
  /** It stands already: readers have it. */
  isRepeated?: true;
}

/**
 * The text of one output as its readers see it, to be said again as a whole from time to time. The longer it is, the more
 * rarely: what is said again is in all a few times the text.
 */
export class OutputTextLog {
  /** What stays: all before the block that is worked on. */
  #stable: TextPiece = { offset: 0, text: '' };
  /** The last snapshot, in whose place another may come. */
  #block: TextPiece | undefined;
  /** The least place from which on something was taken back. */
  #changedFrom: number | undefined;
  #entries = 0;
  #allEntries = 0;
  /** Something was lost that is not known here. */
  #isPartial = false;

  /** `said`: by earlier deliveries. */
  constructor(said: readonly TextEvent[] = []) {
    for (const event of said) {
      const changedFrom = event.type === 'reset' ? event.offset : event.changedFrom;
      if (changedFrom !== undefined) this.#change(changedFrom);
      if (event.type === 'reset') this.#cut(event.offset);
      else this.#take(event);
    }
  }

  add(piece: SaidPiece): TextNotes {
    const { type, offset, text } = piece;
    const standing = this.#text.slice(offset);
    this.#isPartial ||= offset > this.#text.length;
    if (this.#isPartial) return {};
    if (this.#stands(piece)) return { isRepeated: true };
    const differs = type === 'delta' && !text.startsWith(standing);
    if (differs) this.#change(offset);
    const whole = this.#take(piece, differs);
    return { ...(differs && { differsFrom: offset }), ...(whole && { whole }) };
  }

  /** What is to be written where readers would not have the output: a rerun may have said less than stands, or nothing. */
  endedAs(output: string): Pick<TextNotes, 'differsFrom' | 'whole'> {
    const standing = this.#text;
    if (this.#isPartial || standing === output) return {};
    let differsFrom = 0;
    while (differsFrom < output.length && standing[differsFrom] === output[differsFrom]) differsFrom += 1;
    return { differsFrom, whole: { offset: 0, text: output, changedFrom: this.#changeAt(differsFrom) } };
  }

  /** Whether readers have it: a rerun says what was said before, and shows blocks in work that are done. */
  #stands(piece: SaidPiece): boolean {
    const { type, offset, text, done } = piece;
    const { text: stable, done: stableDone } = this.#stable;
    if (!stays(piece)) return offset < stable.length;
    // Tokens that are no text yet stand nowhere, and are counted.
    if (text === '') return done !== undefined && stableDone !== undefined && done <= stableDone;
    return type === 'delta' ? this.#text.startsWith(text, offset) : stable.startsWith(text, offset);
  }

  get #text(): string {
    return this.#stable.text + (this.#block?.text ?? '');
  }

  /** @returns all that stands before the piece and stays, when it should take the place of what was written of it. */
  #take(said: SaidPiece, differs = false): WholeText | undefined {
    const { type, offset, text, done, facts } = said;
    const piece = { offset, text, ...(done !== undefined && { done }), ...(facts && { facts }) };
    // What stands before the place where the next piece begins is not worked on any more.
    if (this.#block !== undefined && (type === 'delta' || offset > this.#block.offset)) {
      this.#stable = append(this.#stable, this.#block);
      this.#block = undefined;
    }
    this.#isPartial ||= offset > this.#stable.text.length;
    this.#cut(offset);
    const changedFrom = this.#changedFrom;
    const whole =
      this.#isDue() || differs ? { ...this.#stable, ...(changedFrom !== undefined && { changedFrom }) } : undefined;
    const isStable = stays(said);
    if (isStable) this.#stable = append(this.#stable, piece);
    this.#block = isStable ? undefined : piece;
    return whole;
  }

  #changeAt(offset: number): number {
    return Math.min(offset, this.#changedFrom ?? offset);
  }

  #change(offset: number): void {
    this.#changedFrom = this.#changeAt(offset);
  }

  /** Of a beginning nobody knows the facts. */
  #cut(length: number): void {
    if (this.#block !== undefined && length < this.#stable.text.length) this.#block = undefined;
    if (length < this.#stable.text.length) this.#stable = { offset: 0, text: this.#stable.text.slice(0, length) };
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

/** It is not worked on any more, as is what says nothing of itself. */
function stays({ type, facts, isWhole }: SaidPiece & { isWhole?: true }): boolean {
  return type === 'delta' || isWhole === true || facts === undefined || facts['settled'] !== undefined;
}

function append(whole: TextPiece, { text, done, facts: right }: TextPiece): TextPiece {
  const facts = joinFacts(whole.facts, right);
  return { offset: 0, text: whole.text + text, ...(done !== undefined && { done }), ...(facts && { facts }) };
}
