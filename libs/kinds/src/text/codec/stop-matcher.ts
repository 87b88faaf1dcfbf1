import { itemAt } from '@darkroom/core';

/** Result of a chunk: the text that can be emitted, and the stop string if one was found. */
export interface StopMatch {
  /** Text that is not part of a stop string and cannot become part of one. */
  readonly text: string;
  /** The completed stop string: the first to end, and the longest of those that end together. */
  readonly stop?: string;
}

interface Pattern {
  readonly text: string;
  /** Knuth–Morris–Pratt failure table: by number of matched units, how many stay matched after a mismatch. */
  readonly fallback: readonly number[];
  matched: number;
}

/**
 * Finds stop strings in a text while it is generated, across chunk boundaries. Holds back text that may be the prefix
 * of a stop string. Takes linear time, however long the stop strings are.
 */
export class StopMatcher {
  readonly #patterns: Pattern[];
  #held = '';

  /** @param stops stop strings, none of them empty. */
  constructor(stops: readonly string[]) {
    this.#patterns = stops.map((text) => ({ text, fallback: fallbackOf(text), matched: 0 }));
  }

  /** Takes the next chunk of the text. Do not call after a stop string was found. */
  push(piece: string): StopMatch {
    const whole = this.#held + piece;
    for (let at = this.#held.length; at < whole.length; at++) {
      const stop = this.#take(whole.charAt(at));
      if (stop === undefined) continue;
      this.#held = '';
      return { text: whole.slice(0, at + 1 - stop.length), stop };
    }
    const held = this.#patterns.reduce((longest, { matched }) => Math.max(longest, matched), 0);
    this.#held = whole.slice(whole.length - held);
    return { text: whole.slice(0, whole.length - held) };
  }

  /** Ends the text: returns the text held back. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    for (const pattern of this.#patterns) pattern.matched = 0;
    return held;
  }

  /** Returns an independent copy with the same state. */
  clone(): StopMatcher {
    const other = new StopMatcher([]);
    other.#patterns.push(...this.#patterns.map((pattern) => ({ ...pattern })));
    other.#held = this.#held;
    return other;
  }

  #take(unit: string): string | undefined {
    let found: string | undefined;
    for (const pattern of this.#patterns) {
      const { text, fallback } = pattern;
      while (pattern.matched > 0 && text[pattern.matched] !== unit)
        pattern.matched = itemAt(fallback, pattern.matched - 1);
      if (text[pattern.matched] === unit) pattern.matched += 1;
      if (pattern.matched === text.length && text.length > (found?.length ?? 0)) found = text;
    }
    return found;
  }
}

function fallbackOf(text: string): number[] {
  const fallback = [0];
  for (let at = 1, matched = 0; at < text.length; at++) {
    while (matched > 0 && text[at] !== text[matched]) matched = itemAt(fallback, matched - 1);
    if (text[at] === text[matched]) matched += 1;
    fallback.push(matched);
  }
  return fallback;
}
