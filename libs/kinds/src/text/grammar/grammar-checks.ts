import { createHash } from 'node:crypto';
import { DarkroomError, OwnerTurns, deleteOldest } from '@darkroom/core';
import type { TextConstraint } from '../form/text-input.ts';
import { grammarError } from './schema/grammar-problem.ts';
import type { GrammarAnswer } from './engine/grammar-message.ts';
import { threadCpuMs } from './thread-cpu.ts';
import { ThreadLink } from './thread-link.ts';

/** CPU time limit of one check. */
const defaultLimitMs = 2000;
/** Wall-clock limit of a check that gets too little CPU time. The error is retryable. */
const maxWaitMs = 10_000;
/** Time limit for the start of a thread, which is slow on a busy machine. */
const startLimitMs = 60_000;
/** Maximum characters of a constraint as JSON, which is stored with the request. */
const maxLength = 1_000_000;
/** Maximum cached outcomes; the least recently used is evicted. */
const maxOutcomes = 1000;
/** Maximum waiting checks per owner. */
const maxWaitingPerOwner = 64;
/** Compile time above which a constraint is slow. Engines compile slow constraints in a separate thread. */
const slowMs = 250;
/** Memory limit of the thread's grammar engine. */
const maxBytes = 96 * 2 ** 20;
const tooMany = 'Too many of your grammars are waiting to be checked, try again later.';
const cannotCheck = 'Grammars cannot be checked now, try again later.';

export type CheckOutcome =
  | { readonly type: 'valid'; readonly isSlow: boolean }
  | { readonly type: 'refused'; readonly problem: string };

interface Check {
  readonly source: string;
  readonly resolve: (outcome: CheckOutcome) => void;
  /** Called if the check could not run. */
  readonly reject: (error: Error) => void;
}

/**
 * Checks clients' constraints in a thread, one at a time. Owners take turns, each check has a CPU time limit, and
 * outcomes are cached.
 */
export class GrammarChecks {
  readonly #limitMs: number;
  readonly #outcomes = new Map<string, CheckOutcome>();
  /** Waiting and running checks, by the hash of the constraint and the owner. */
  readonly #pending = new Map<string, Promise<CheckOutcome>>();
  readonly #turns = new OwnerTurns({ concurrency: 1, maxWaitingPerOwner });
  #running: Check | undefined;
  #link: ThreadLink | undefined;
  #threadId: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ limitMs = defaultLimitMs }: { limitMs?: number } = {}) {
    this.#limitMs = limitMs;
  }

  /**
   * Checks a constraint. Returns the constraint to be stored with the request: marked if it is slow.
   *
   * @throws DarkroomError `invalid_request`, for a schema with the path (`$.properties.age.contains`); `overloaded` if
   * too many checks of the owner are waiting, or the check got too little CPU time.
   */
  async check(constraint: TextConstraint, owner = ''): Promise<TextConstraint> {
    const source = JSON.stringify(constraint);
    if (source.length > maxLength)
      throw grammarError(`it has ${source.length} characters, expected at most ${maxLength}`);
    const outcome = await this.#outcomeOf(source, owner);
    if (outcome.type === 'refused') throw grammarError(outcome.problem);
    return outcome.isSlow ? { ...constraint, isSlow: true } : constraint;
  }

  /** Ends the thread. Waiting checks never settle. */
  async dispose(): Promise<void> {
    const link = this.#link;
    this.#link = undefined;
    clearTimeout(this.#timer);
    await link?.end();
  }

  #outcomeOf(source: string, owner: string): Promise<CheckOutcome> {
    const key = createHash('sha256').update(source).digest('base64');
    const known = this.#outcomes.get(key);
    if (known !== undefined) {
      this.#cacheOutcome(key, known);
      return Promise.resolve(known);
    }
    // Do not share pending checks between owners: one owner would wait for another's turn.
    const pendingKey = `${key} ${owner}`;
    const pending = this.#pending.get(pendingKey) ?? this.#check(key, source, owner);
    this.#pending.set(pendingKey, pending);
    return pending.finally(() => this.#pending.delete(pendingKey));
  }

  async #check(key: string, source: string, owner: string): Promise<CheckOutcome> {
    const release = await this.#turns.acquire(owner);
    if (release === undefined) throw overloaded(tooMany);
    try {
      const known = this.#outcomes.get(key);
      if (known !== undefined) return known;
      const outcome = await new Promise<CheckOutcome>((resolve, reject) => this.#run({ source, resolve, reject }));
      this.#cacheOutcome(key, outcome);
      return outcome;
    } finally {
      release();
    }
  }

  #cacheOutcome(key: string, outcome: CheckOutcome): void {
    this.#outcomes.delete(key);
    this.#outcomes.set(key, outcome);
    if (this.#outcomes.size > maxOutcomes) deleteOldest(this.#outcomes);
  }

  #run(check: Check): void {
    this.#running = check;
    if (this.#link === undefined) this.#startThread();
    else this.#post();
  }

  #startThread(): void {
    const link = new ThreadLink({
      vocabulary: undefined,
      maxBytes,
      onAnswer: (answer) => this.#onAnswer(answer),
      onEnd: () => this.#link === link && this.#fail('it is too complex'),
    });
    this.#link = link;
    link.keepAlive(true);
    link.post({ type: 'start' });
    this.#timer = setTimeout(() => this.#abandon(), startLimitMs).unref();
  }

  #post(): void {
    this.#link!.keepAlive(true);
    this.#link!.post({ type: 'check', source: this.#running!.source });
    this.#watch(threadCpuMs(this.#threadId), maxWaitMs);
  }

  /** Ends the check once it has used its CPU time, or got too little CPU time within `waitMs`. */
  #watch(beforeMs: number, waitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (threadCpuMs(this.#threadId) - beforeMs >= this.#limitMs)
        this.#fail(`it is too complex: it takes longer than ${this.#limitMs / 1000} s to compile`);
      else if (waitMs > this.#limitMs) this.#watch(beforeMs, waitMs - this.#limitMs);
      else this.#abandon();
    }, this.#limitMs).unref();
  }

  #onAnswer(answer: GrammarAnswer): void {
    if (answer.type === 'done') {
      this.#threadId = answer.threadId;
      return this.#post();
    }
    if (answer.type === 'refused' && answer.isBroken) return this.#fail(answer.problem);
    clearTimeout(this.#timer);
    if (answer.type === 'refused') this.#end({ type: 'refused', problem: answer.problem });
    else if (answer.type === 'checked') this.#end({ type: 'valid', isSlow: answer.isRecursive || answer.ms > slowMs });
  }

  /** Refuses the running check's constraint and ends the thread. */
  #fail(problem: string): void {
    this.#endThread();
    this.#end({ type: 'refused', problem });
  }

  /** Ends the check with a retryable error: the thread did not start or got too little CPU time. */
  #abandon(): void {
    this.#endThread();
    const check = this.#running;
    this.#running = undefined;
    check?.reject(overloaded(cannotCheck));
  }

  #endThread(): void {
    clearTimeout(this.#timer);
    const link = this.#link;
    this.#link = undefined;
    void link?.end();
  }

  #end(outcome: CheckOutcome): void {
    const check = this.#running;
    this.#running = undefined;
    this.#link?.keepAlive(false);
    check?.resolve(outcome);
  }
}

function overloaded(message: string): DarkroomError {
  return new DarkroomError('overloaded', 'text.check-grammar', message);
}
