import type { OutputText } from '@darkroom/core';

/** Entries of one output's text after which the log is made one snapshot: what a late reader has to read at most. */
const longestLog = 64;

/** What is to be written beside a piece of text. */
export interface TextNotes {
  /** Before it: from here on it says something else than what stands, which a rerun may do. */
  differsFrom?: number;
  /** Before it: all of the text that stays, in place of what was written of it. */
  whole?: OutputText;
  /** It stands already: readers have it. */
  isRepeated?: true;
}

/** The text of one output as its readers see it, to be said again as a whole from time to time. */
export class OutputTextLog {
  #text: string;
  /** How far this delivery has come; undefined while it has said nothing. */
  #saidTo: number | undefined;
  #entries = 0;
  /** Something was lost that is not known here. */
  #isPartial = false;

  /** `text`: what earlier deliveries have said. */
  constructor(text = '') {
    this.#text = text;
  }

  add({ type, index, offset, text }: OutputText & { type: 'delta' | 'snapshot' }): TextNotes {
    this.#isPartial ||= offset > this.#text.length;
    if (this.#isPartial) return {};
    const standing = this.#text.slice(offset);
    const differs = type === 'delta' && !standing.startsWith(text) && !text.startsWith(standing);
    this.#saidTo = offset + text.length;
    if (type === 'delta' && text !== '' && standing.startsWith(text)) return { isRepeated: true };
    const stays = this.#text.slice(0, offset);
    this.#text = stays + text;
    this.#entries += 1;
    const notes = differs ? { differsFrom: offset } : {};
    if (this.#entries < longestLog) return notes;
    this.#entries = 1;
    // What stands behind is worked on, or written anew: the piece says it.
    return { ...notes, whole: { index, offset: 0, text: stays } };
  }

  /** Where the text ends if less was said now than stands: the rest is not said again. */
  get endsAt(): number | undefined {
    const isShorter = this.#saidTo !== undefined && this.#saidTo < this.#text.length && !this.#isPartial;
    return isShorter ? this.#saidTo : undefined;
  }
}
