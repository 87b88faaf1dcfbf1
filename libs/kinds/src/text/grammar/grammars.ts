import { DarkroomError } from '@darkroom/core';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { TextConstraint } from '../text-input.ts';
import type {
  AllowedTokens,
  GrammarAnswer,
  GrammarQuestion,
  GrammarThreadData,
  GrammarVocabulary,
} from './grammar-message.ts';
import { checkClasses } from './ebnf-classes.ts';
import { schemaGrammar } from './schema/schema-grammar.ts';

export interface GrammarsOptions {
  /** Of the model that texts are matched for; without one there is no `open`. */
  vocabulary?: GrammarVocabulary;
  /** How long the thread may take for one question before it is ended. */
  limitMs?: number;
}

/** What a text may go on with, for one text. */
export interface TextMatcher {
  /** What may come next; undefined while that is being found out. */
  readonly next: NextTokens | undefined;
  /** Resolves when `next` is known. */
  whenKnown(): Promise<void>;
  /** The text goes on with this token, one of those allowed. `next` is not known then. */
  accept(id: number): void;
  close(): void;
}

export type NextTokens =
  | ({ readonly type: 'allowed' } & AllowedTokens)
  /** It cannot go on. */
  | { readonly type: 'refused'; readonly problem: string };

/** A thread may take so long until it is there: that is no grammar's fault, and on a busy machine it is long. */
const startLimitMs = 120_000;
/** Characters of a constraint's JSON: it travels with its request. */
const maxLength = 1_000_000;

interface Asked {
  readonly question: GrammarQuestion;
  readonly hear: (answer: GrammarAnswer) => void;
}

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../../dist/text/grammar' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/grammar-thread.js`, import.meta.url));

/**
 * Grammars, read and matched by xgrammar in a thread, which is started when it is first needed. A thread that breaks or takes
 * too long is replaced by another: what it was asked last is refused, and all else is asked anew.
 */
export class Grammars {
  readonly #vocabulary: GrammarVocabulary | undefined;
  readonly #limitMs: number;
  readonly #matchers = new Map<number, Matcher>();
  #asked: Asked[] = [];
  #thread: { readonly worker: Worker; readonly port: MessagePort } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #made = 0;

  constructor({ vocabulary, limitMs = 10_000 }: GrammarsOptions = {}) {
    this.#vocabulary = vocabulary;
    this.#limitMs = limitMs;
  }

  /**
   * EBNF of the JSON texts that a schema allows, on one line, with ", " and ": ".
   *
   * @throws DarkroomError `invalid_request` whose message begins with the place of what cannot be done:
   * `$.properties.age.multipleOf`.
   */
  // oxlint-disable-next-line require-await
  async ofSchema(schema: unknown): Promise<string> {
    return schemaGrammar(schema);
  }

  /** @throws DarkroomError `invalid_request` if it is none. */
  async check(constraint: TextConstraint): Promise<void> {
    const { length } = JSON.stringify(constraint);
    if (length > maxLength) throw checkError(`the grammar has ${length} characters, expected at most ${maxLength}`);
    checkClasses(constraint);
    const answer = await new Promise<GrammarAnswer>((hear) =>
      this.#ask({ question: { type: 'check', constraint }, hear }),
    );
    if (answer.type === 'refused') throw checkError(answer.problem);
  }

  /** @param ids tokens that were written before, here or elsewhere. */
  open(constraint: TextConstraint, ids: readonly number[] = []): TextMatcher {
    const matcher = new Matcher(this.#made++, constraint, ids, {
      ask: (question) => this.#ask({ question, hear: (answer) => matcher.hear(answer) }),
      listen: () => this.#listen(),
      close: (number) => this.#close(number),
    });
    this.#matchers.set(matcher.number, matcher);
    matcher.open();
    return matcher;
  }

  /** Ends the thread. What it was asked is never answered. */
  async dispose(): Promise<void> {
    const { worker } = this.#thread ?? {};
    this.#thread = undefined;
    this.#asked = [];
    clearTimeout(this.#timer);
    await worker?.terminate();
  }

  #ask(asked: Asked): void {
    const port = this.#startThread();
    this.#asked.push(asked);
    port.postMessage(asked.question, []);
    if (this.#asked.length === 1) this.#startTimer();
  }

  #close(number: number): void {
    this.#matchers.delete(number);
    // One that is started for this has nothing to close.
    if (this.#thread !== undefined) this.#ask({ question: { type: 'close', matcher: number }, hear: () => {} });
  }

  #startThread(): MessagePort {
    if (this.#thread !== undefined) return this.#thread.port;
    const { port1: port, port2 } = new MessageChannel();
    const workerData: GrammarThreadData = { port: port2, vocabulary: this.#vocabulary };
    // No flags of this process: a test's conditions are not the thread's.
    const worker = new Worker(entry, { workerData, transferList: [port2], execArgv: [] });
    this.#thread = { worker, port };
    port.on('message', (answer: GrammarAnswer) => this.#hear(port, answer));
    worker.once('error', () => this.#replace(port, 'it cannot be read'));
    worker.once('exit', () => this.#replace(port, 'it cannot be read'));
    worker.unref();
    this.#ask({ question: { type: 'start' }, hear: () => {} });
    return port;
  }

  /** Hears what has been said meanwhile, with no turn of the event loop. */
  #listen(): void {
    const { port } = this.#thread ?? {};
    for (let said = port && receiveMessageOnPort(port); said; said = receiveMessageOnPort(port!))
      this.#hear(port!, said.message as GrammarAnswer);
  }

  #hear(port: MessagePort, answer: GrammarAnswer): void {
    if (port !== this.#thread?.port) return;
    if (answer.type === 'refused' && answer.isBroken) return this.#replace(port, answer.problem);
    const asked = this.#asked.shift();
    this.#startTimer();
    asked?.hear(answer);
  }

  #startTimer(): void {
    clearTimeout(this.#timer);
    const { port } = this.#thread ?? {};
    // What nobody waits for keeps no process alive.
    if (this.#asked.length === 0) return port?.unref();
    if (port === undefined) return;
    port.ref();
    const limitMs = this.#asked[0]!.question.type === 'start' ? startLimitMs : this.#limitMs;
    const problem = `it takes longer than ${limitMs / 1000} s to prepare`;
    this.#timer = setTimeout(() => this.#replace(port, problem), limitMs).unref();
  }

  /** Lets a thread go, with whatever was asked last, and asks another for the rest. */
  #replace(port: MessagePort, problem: string): void {
    if (port !== this.#thread?.port) return;
    const { worker } = this.#thread;
    this.#thread = undefined;
    clearTimeout(this.#timer);
    void worker.terminate();
    const [guilty, ...rest] = this.#asked;
    this.#asked = [];
    guilty?.hear({ type: 'refused', problem, isBroken: false });
    if (guilty?.question.type === 'start') return this.#giveUp(rest, problem);
    for (const asked of rest) if (asked.question.type === 'check') this.#ask(asked);
    for (const matcher of this.#matchers.values()) matcher.reopen();
  }

  /** Without a thread that starts there is nobody to ask; who asks next tries again. */
  #giveUp(asked: readonly Asked[], problem: string): void {
    for (const { hear } of asked) hear({ type: 'refused', problem, isBroken: false });
  }
}

function checkError(message: string): DarkroomError {
  return new DarkroomError('invalid_request', 'text.check-grammar', message);
}

interface MatcherThread {
  ask(question: GrammarQuestion): void;
  listen(): void;
  close(number: number): void;
}

class Matcher implements TextMatcher {
  readonly number: number;
  readonly #constraint: TextConstraint;
  readonly #ids: number[];
  readonly #thread: MatcherThread;
  #next: NextTokens | undefined;
  /** Questions that are not answered. */
  #asked = 0;
  #waiting: (() => void)[] = [];

  constructor(number: number, constraint: TextConstraint, ids: readonly number[], thread: MatcherThread) {
    this.number = number;
    this.#constraint = constraint;
    this.#ids = [...ids];
    this.#thread = thread;
  }

  get next(): NextTokens | undefined {
    if (this.#next === undefined) this.#thread.listen();
    return this.#next;
  }

  whenKnown(): Promise<void> {
    return new Promise((resolve) => {
      if (this.next === undefined) this.#waiting.push(resolve);
      else resolve();
    });
  }

  accept(id: number): void {
    this.#ids.push(id);
    this.#next = undefined;
    this.#ask({ type: 'accept', matcher: this.number, id });
  }

  open(): void {
    this.#ask({ type: 'open', matcher: this.number, constraint: this.#constraint, ids: this.#ids });
  }

  /** Asks another thread, and not for what cannot go on. */
  reopen(): void {
    if (this.#next?.type === 'refused') return;
    this.#asked = 0;
    this.open();
  }

  hear(answer: GrammarAnswer): void {
    this.#asked -= 1;
    if (answer.type === 'done' || (this.#asked > 0 && answer.type === 'allowed')) return;
    this.#next =
      answer.type === 'allowed' ? { type: 'allowed', ...answer.allowed } : { type: 'refused', problem: answer.problem };
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #ask(question: GrammarQuestion): void {
    this.#asked += 1;
    this.#thread.ask(question);
  }

  close(): void {
    this.#thread.close(this.number);
  }
}
