/** What is known of a text after a piece of it: what may be said by now, and whether a stop text has come. */
export interface StopMatch {
  /** Text of which no part belongs to a stop text, nor can come to belong to one. */
  readonly text: string;
  /** The stop text that has come whole; the first to end, and the longest of those that end together. */
  readonly stop?: string;
}

interface Pattern {
  readonly text: string;
  /** By matched units: how many stay matched when the next one does not fit (Knuth, Morris and Pratt's table). */
  readonly fallback: readonly number[];
  matched: number;
}

/**
 * Finds texts that end a text while it is written, across the borders of its pieces. What may be the beginning of one is
 * held back until it is known not to be. Each unit is looked at once, however long the stop texts are.
 */
export class StopMatcher {
  readonly #patterns: Pattern[];
  #held = '';

  /** @param stops none of them empty. */
  constructor(stops: readonly string[]) {
    this.#patterns = stops.map((text) => ({ text, fallback: fallbackOf(text), matched: 0 }));
  }

  /** Takes the next piece of the text. After a stop text nothing more is to be given. */
  push(piece: string): StopMatch {
    const whole = this.#held + piece;
    for (let at = this.#held.length; at < whole.length; at++) {
      const stop = this.#take(whole[at]!);
      if (stop === undefined) continue;
      this.#held = '';
      return { text: whole.slice(0, at + 1 - stop.length), stop };
    }
    const held = this.#patterns.reduce((longest, { matched }) => Math.max(longest, matched), 0);
    this.#held = whole.slice(whole.length - held);
    return { text: whole.slice(0, whole.length - held) };
  }

  /** The text has ended: what was held back belongs to it. */
  end(): string {
    const held = this.#held;
    this.#held = '';
    for (const pattern of this.#patterns) pattern.matched = 0;
    return held;
  }

  /** One that stands where this one does. */
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
      while (pattern.matched > 0 && text[pattern.matched] !== unit) pattern.matched = fallback[pattern.matched - 1]!;
      if (text[pattern.matched] === unit) pattern.matched += 1;
      if (pattern.matched === text.length && text.length > (found?.length ?? 0)) found = text;
    }
    return found;
  }
}

function fallbackOf(text: string): number[] {
  const fallback = [0];
  for (let at = 1, matched = 0; at < text.length; at++) {
    while (matched > 0 && text[at] !== text[matched]) matched = fallback[matched - 1]!;
    if (text[at] === text[matched]) matched += 1;
    fallback.push(matched);
  }
  return fallback;
}
