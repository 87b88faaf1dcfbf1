import { WakeSignal } from '@darkroom/core';
import type { TextConstraint } from '../form/text-input.ts';
import type { AllowedTokens, GrammarAnswer, GrammarQuestion, GrammarVocabulary } from './engine/grammar-message.ts';
import { ThreadLink } from './thread-link.ts';

export interface GrammarsOptions {
  /** Vocabulary of the model. */
  vocabulary: GrammarVocabulary;
  /** Time limit for one question; then its thread is ended. */
  limitMs?: number;
}

/** Tracks the allowed next tokens of one text. */
export interface TextMatcher {
  /** The allowed next tokens; undefined until the thread has answered. */
  readonly next: NextTokens | undefined;
  /** Resolves when `next` is known. */
  whenKnown(): Promise<void>;
  /** Appends an allowed token to the text; `next` becomes undefined. */
  accept(id: number): void;
  close(): void;
}

export type NextTokens =
  | ({ readonly type: 'allowed' } & AllowedTokens)
  /** The text cannot continue. */
  | { readonly type: 'refused'; readonly problem: string };

/** Time limit for the start of a thread, which takes long on a busy machine. */
const startLimitMs = 120_000;
/** Maximum WebAssembly memory of one thread. */
const maxBytes = 256 * 2 ** 20;
/** Maximum remembered constraints that broke a thread; they are not compiled again. */
const maxFailures = 100;

/**
 * Matches texts with their constraints in a thread that starts on first use. Slow constraints share a second thread, so
 * they delay only each other.
 */
export class Grammars {
  readonly #lanes: { readonly quick: Lane; readonly slow: Lane };
  #opened = 0;

  constructor({ vocabulary, limitMs = 20_000 }: GrammarsOptions) {
    this.#lanes = { quick: new Lane(vocabulary, limitMs), slow: new Lane(vocabulary, limitMs) };
  }

  /** @param ids tokens generated before, here or on another worker. */
  open(constraint: TextConstraint, ids: readonly number[] = []): TextMatcher {
    const { isSlow = false, ...plain } = constraint;
    return this.#lanes[isSlow ? 'slow' : 'quick'].open(this.#opened++, JSON.stringify(plain), ids);
  }

  /** Ends the threads. Open questions are never answered. */
  async dispose(): Promise<void> {
    await Promise.all(Object.values(this.#lanes).map((lane) => lane.dispose()));
  }
}

interface PendingQuestion {
  readonly question: GrammarQuestion;
  readonly onAnswer: (answer: GrammarAnswer) => void;
}

/**
 * One thread and its matchers. Replaces a thread that breaks or takes too long: rejects the text that it was matching,
 * and reopens all other matchers with their tokens.
 */
class Lane {
  readonly #vocabulary: GrammarVocabulary;
  readonly #limitMs: number;
  readonly #matchers = new Map<number, Matcher>();
  readonly #failures = new Map<string, string>();
  #pending: PendingQuestion[] = [];
  #link: ThreadLink | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(vocabulary: GrammarVocabulary, limitMs: number) {
    this.#vocabulary = vocabulary;
    this.#limitMs = limitMs;
  }

  open(number: number, source: string, ids: readonly number[]): TextMatcher {
    const matcher = new Matcher(number, source, ids, {
      post: (question) => this.#post({ question, onAnswer: (answer) => matcher.onAnswer(answer) }),
      listen: () => this.#link?.listen(),
      close: () => this.#close(number),
    });
    const failure = this.#failures.get(source);
    if (failure === undefined) {
      this.#matchers.set(number, matcher);
      matcher.open();
    } else matcher.onAnswer({ type: 'refused', problem: failure, isBroken: false });
    return matcher;
  }

  async dispose(): Promise<void> {
    const link = this.#link;
    this.#link = undefined;
    this.#pending = [];
    clearTimeout(this.#timer);
    await link?.end();
  }

  #post(pending: PendingQuestion): void {
    const link = this.#startThread();
    this.#pending.push(pending);
    link.post(pending.question);
    if (this.#pending.length === 1) this.#startTimer();
  }

  #close(number: number): void {
    // A new thread has no matcher to close.
    if (this.#matchers.delete(number) && this.#link !== undefined)
      this.#post({ question: { type: 'close', matcher: number }, onAnswer: () => {} });
  }

  #startThread(): ThreadLink {
    if (this.#link !== undefined) return this.#link;
    const link = new ThreadLink({
      vocabulary: this.#vocabulary,
      maxBytes,
      onAnswer: (answer) => this.#onAnswer(link, answer),
      onEnd: () => this.#replace(link, 'it is too complex'),
    });
    this.#link = link;
    this.#post({ question: { type: 'start' }, onAnswer: () => {} });
    return link;
  }

  #onAnswer(link: ThreadLink, answer: GrammarAnswer): void {
    if (link !== this.#link) return;
    if (answer.type === 'refused' && answer.isBroken) return this.#replace(link, answer.problem);
    const pending = this.#pending.shift();
    this.#startTimer();
    pending?.onAnswer(answer);
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    const link = this.#link;
    if (link === undefined) return;
    // Only an awaited answer keeps the process alive.
    link.keepAlive(this.#pending.length > 0);
    const [first] = this.#pending;
    if (first === undefined) return;
    const limitMs = first.question.type === 'start' ? startLimitMs : this.#limitMs;
    const problem = `it takes longer than ${limitMs / 1000} s to prepare`;
    this.#timer = setTimeout(() => this.#replace(link, problem), limitMs).unref();
  }

  #replace(link: ThreadLink, problem: string): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    clearTimeout(this.#timer);
    void link.end();
    const [failed, ...rest] = this.#pending;
    this.#pending = [];
    if (failed !== undefined) this.#refuse(failed, problem);
    // If a thread does not start, reject all questions; the next question starts another thread.
    if (failed?.question.type === 'start')
      for (const { onAnswer } of rest) onAnswer({ type: 'refused', problem, isBroken: false });
    else for (const matcher of this.#matchers.values()) matcher.reopen();
  }

  #refuse({ question, onAnswer }: PendingQuestion, problem: string): void {
    const matcher = 'matcher' in question ? this.#matchers.get(question.matcher) : undefined;
    if (matcher !== undefined) this.#failures.set(matcher.source, problem);
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > maxFailures && oldest !== undefined) this.#failures.delete(oldest);
    onAnswer({ type: 'refused', problem, isBroken: false });
  }
}

interface MatcherThread {
  post(question: GrammarQuestion): void;
  listen(): void;
  close(): void;
}

class Matcher implements TextMatcher {
  readonly source: string;
  readonly #number: number;
  readonly #ids: number[];
  readonly #thread: MatcherThread;
  #next: NextTokens | undefined;
  /** Number of unanswered questions. */
  #pending = 0;
  readonly #answered = new WakeSignal();

  constructor(number: number, source: string, ids: readonly number[], thread: MatcherThread) {
    this.source = source;
    this.#number = number;
    this.#ids = [...ids];
    this.#thread = thread;
  }

  get next(): NextTokens | undefined {
    if (this.#next === undefined) this.#thread.listen();
    return this.#next;
  }

  async whenKnown(): Promise<void> {
    while (this.next === undefined) await this.#answered.wait();
  }

  accept(id: number): void {
    this.#ids.push(id);
    this.#next = undefined;
    this.#post({ type: 'accept', matcher: this.#number, id });
  }

  open(): void {
    this.#post({ type: 'open', matcher: this.#number, source: this.source, ids: this.#ids });
  }

  /** Reopens the matcher in another thread, unless the text was rejected. */
  reopen(): void {
    if (this.#next?.type === 'refused') return;
    this.#pending = 0;
    this.open();
  }

  onAnswer(answer: GrammarAnswer): void {
    this.#pending -= 1;
    if (this.#pending > 0 && answer.type === 'allowed') return;
    if (answer.type === 'allowed') this.#next = { type: 'allowed', ...answer.allowed };
    else if (answer.type === 'refused') this.#next = { type: 'refused', problem: answer.problem };
    else return;
    this.#answered.wake();
  }

  #post(question: GrammarQuestion): void {
    this.#pending += 1;
    this.#thread.post(question);
  }

  close(): void {
    this.#thread.close();
  }
}
