import type { OutputText } from '@darkroom/core';

/** Entries of one output's text after which the log is made one snapshot: what a late reader has to read at most. */
const longestLog = 64;

/** The text of one output as it has been said so far, to be said again as a whole from time to time. */
export class OutputTextLog {
  #text = '';
  #entries = 0;
  /** An earlier delivery said the beginning, which is not known here. */
  #isPartial = false;

  /**
   * @returns what stands before this piece, when it should take the place of what was written of it, else undefined. Without
   *   the piece itself: what stands in a block that is worked on does not stay, and readers of a whole take all of it for good.
   */
  add({ index, offset, text }: OutputText): OutputText | undefined {
    if (offset > this.#text.length) this.#isPartial = true;
    if (this.#isPartial) return undefined;
    const before = this.#text.slice(0, offset);
    this.#text = before + text;
    this.#entries += 1;
    if (this.#entries <= longestLog) return undefined;
    this.#entries = 1;
    return { index, offset: 0, text: before };
  }
}
