import { itemAt } from '@darkroom/core';
import { GrammarProblem } from '../schema/grammar-problem.ts';
import type { AllowedTokens } from './grammar-message.ts';
import type { GrammarEngine } from './grammar-engine.ts';

/** Maximum cached grammars; the least recently used is evicted. */
const maxGrammars = 32;
/** Maximum growth of one matcher in bytes: lexers are built while a text is matched. */
const maxMatcherBytes = 32 * 2 ** 20;

interface OpenMatcher {
  readonly handle: number;
  /** Bytes allocated since it was opened. */
  bytes: number;
}

/** The matchers of one engine by number, and a cache of compiled grammars by source. */
export class Matchers {
  readonly #engine: GrammarEngine;
  readonly #endIds: readonly number[];
  readonly #grammars = new Map<string, number>();
  readonly #open = new Map<number, OpenMatcher>();

  constructor(engine: GrammarEngine, endIds: readonly number[]) {
    this.#engine = engine;
    this.#endIds = endIds;
  }

  /** Opens a matcher. @param larkOf translates the grammar if it is not cached. */
  open(number: number, source: string, larkOf: () => string): void {
    const grammar = this.#grammars.get(source) ?? this.#compile(larkOf());
    this.#grammars.delete(source);
    this.#grammars.set(source, grammar);
    this.#dropOld(maxGrammars);
    this.#open.set(number, { handle: this.#engine.open(grammar), bytes: 0 });
  }

  accept(number: number, id: number): void {
    this.#measured(number, (handle) => this.#engine.accept(handle, id));
  }

  allowed(number: number): AllowedTokens {
    const words = this.#measured(number, (handle) => this.#engine.mask(handle));
    const [end = 0] = this.#endIds;
    const mayEnd = isSet(words, end);
    set(words, end, false);
    const isEnd = mayEnd && words.every((word) => word === 0);
    if (mayEnd) for (const id of this.#endIds) set(words, id, true);
    return { words, isEnd };
  }

  close(number: number): void {
    const matcher = this.#open.get(number);
    if (matcher === undefined) return;
    this.#engine.close(matcher.handle);
    this.#open.delete(number);
  }

  /** Compiles a grammar, generates some tokens with it, and drops it. */
  tryOut(lark: string, tokens: number): void {
    const grammar = this.#engine.compile(lark);
    const number = -1;
    this.#open.set(number, { handle: this.#engine.open(grammar), bytes: 0 });
    try {
      let state = 1;
      for (let written = 0; written < tokens; written++) {
        const { words, isEnd } = this.allowed(number);
        if (isEnd) break;
        const ids = Array.from({ length: words.length * 32 }, (_, id) => id).filter(
          (id) => isSet(words, id) && !this.#endIds.includes(id),
        );
        if (ids.length === 0) throw new GrammarProblem('it allows no text');
        state = (Math.imul(state, 48_271) >>> 0) % 2_147_483_647;
        this.accept(number, itemAt(ids, state % ids.length));
      }
    } finally {
      this.close(number);
      this.#engine.drop(grammar);
    }
  }

  #compile(lark: string): number {
    if (this.#engine.isFull) this.#dropOld(0);
    if (this.#engine.isFull)
      throw new GrammarProblem('there is no memory for it beside other grammars, try again later');
    return this.#engine.compile(lark);
  }

  #dropOld(max: number): void {
    for (const [source, grammar] of this.#grammars) {
      if (this.#grammars.size <= max) return;
      this.#engine.drop(grammar);
      this.#grammars.delete(source);
    }
  }

  /** Runs work of a matcher and counts the memory that it allocates. */
  #measured<T>(number: number, work: (handle: number) => T): T {
    const matcher = this.#open.get(number);
    if (matcher === undefined) throw new GrammarProblem('it takes too much memory');
    const before = this.#engine.bytesInUse;
    const result = work(matcher.handle);
    matcher.bytes += this.#engine.bytesInUse - before;
    if (matcher.bytes > maxMatcherBytes) {
      this.close(number);
      throw new GrammarProblem('it takes too much memory');
    }
    // Close the largest matcher, so that the others can continue.
    if (this.#engine.isFull) this.#dropOld(0);
    if (this.#engine.isFull) this.close([...this.#open].reduce((a, b) => (b[1].bytes > a[1].bytes ? b : a))[0]);
    return result;
  }
}

function isSet(words: Int32Array, id: number): boolean {
  return ((itemAt(words, id >> 5) >>> (id & 31)) & 1) === 1;
}

function set(words: Int32Array, id: number, value: boolean): void {
  const [word, bit] = [itemAt(words, id >> 5), 1 << (id & 31)];
  words[id >> 5] = value ? word | bit : word & ~bit;
}
