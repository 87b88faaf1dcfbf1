import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DarkroomError } from '@darkroom/core';
import { findModule } from '../module/find-module.ts';
import { wellFormed } from '../upstream/upstream-error.ts';
import { endOfChild } from '../process/end-of-child.ts';
import { forkChild } from '../process/fork-child.ts';
import type { JudgedSubject, MessageFromJudge, MessageToJudge } from './judge-message.ts';

export interface JudgeOptions {
  /** As JUDGE has it: a path that begins with . or /, or the name of a package. */
  module: string;
  /** Whose requests it judges. */
  model: string;
  /** How long a verdict may take, from when the process runs that is asked. */
  timeoutMs: number;
}

/** What was found; without `reason` it may pass. */
export interface Verdict {
  readonly reason?: string;
}

/** `createJudge` has so many times longer than a verdict. */
const startFactor = 10;
const longestReason = 300;

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/judge' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/judge-process.js`, import.meta.url));

/**
 * A module that judges, in a process of its own. There is a verdict or an error: whoever asks lets nothing pass without a verdict. A
 * process that has ended, or was silent while a verdict was due, is another one by the next question.
 */
export class Judge {
  readonly #options: JudgeOptions;
  #child: ChildProcess | undefined;
  #starting: Promise<void> | undefined;
  #judges: readonly JudgedSubject['type'][] = [];
  /** What settles each question that is open. */
  readonly #calls = new Map<number, (verdict: Verdict | Error) => void>();
  #nextCall = 0;
  /** Times that the process was heard of. */
  #heard = 0;

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  /** @throws DarkroomError `model_unsupported` or `internal`, naming the setting, if it cannot start. */
  start(): Promise<void> {
    if (this.#starting !== undefined) return this.#starting;
    const starting = this.#open();
    this.#starting = starting;
    starting.catch(() => {
      if (this.#starting === starting) this.#starting = undefined;
    });
    return starting;
  }

  /** Whether it has a say in these. */
  judges(type: JudgedSubject['type']): boolean {
    return this.#judges.includes(type);
  }

  /** @throws DarkroomError `unavailable` where there is no verdict, with the reason for the log as its cause. */
  async judge(question: JudgedSubject): Promise<Verdict> {
    try {
      await this.start();
      return await this.#ask(question);
    } catch (error) {
      const what = question.type === 'prompt' ? 'the prompt' : 'the picture';
      const message = `what judges requests here gave no verdict on ${what}, and nothing passes without one; try again later`;
      throw new DarkroomError('unavailable', 'executor.judge', message, error);
    }
  }

  stop(): void {
    this.#end('it was stopped');
  }

  async #ask(question: JudgedSubject): Promise<Verdict> {
    const call = this.#nextCall++;
    let timer: NodeJS.Timeout | undefined;
    const verdict = await new Promise<Verdict | Error>((settle) => {
      const heard = this.#heard;
      timer = setTimeout(() => settle(this.#giveUp(call, heard)), this.#options.timeoutMs);
      this.#calls.set(call, settle);
      this.#send({ call, ...question });
    });
    clearTimeout(timer);
    this.#calls.delete(call);
    if (verdict instanceof Error) throw verdict;
    return verdict;
  }

  /** @param heard how often the process had been heard of when it was asked: who was silent ever since hears no abort either. */
  #giveUp(call: number, heard: number): Error {
    const why = `it gave no verdict in ${this.#options.timeoutMs / 1000} s`;
    if (heard === this.#heard) this.#end(why);
    else this.#send({ type: 'abort', call });
    return new Error(why);
  }

  async #open(): Promise<void> {
    const { module, model, timeoutMs } = this.#options;
    const specifier = await findModule(module);
    if (specifier === undefined) throw this.#unfit('expected the path of a module, and there is no such file');
    const child = forkChild(entry);
    this.#child = child;
    const started = new Promise<MessageFromJudge | string>((resolve) => {
      const timer = setTimeout(() => resolve('createJudge was not done in time'), startFactor * timeoutMs);
      child.on('message', (message: MessageFromJudge) => {
        clearTimeout(timer);
        resolve(message);
        if (this.#child === child) this.#receive(message);
      });
      void endOfChild(child).then((how) => {
        clearTimeout(timer);
        resolve(how);
        if (this.#child === child) this.#end(how);
      });
    });
    this.#send({ type: 'start', specifier, model });
    const first = await started;
    if (typeof first !== 'string' && first.type === 'ready') return;
    if (this.#child === child) this.#end('it could not start');
    throw this.#unfit('it cannot start', typeof first === 'string' ? first : 'message' in first ? first.message : '');
  }

  #receive(message: MessageFromJudge): void {
    this.#heard += 1;
    if (message.type === 'ready') this.#judges = message.judges;
    else if (message.type === 'verdict') {
      const { call, allowed, reason } = message;
      this.#calls.get(call)?.(allowed ? {} : { reason: wellFormed(reason.slice(0, longestReason)) });
    } else if (message.type === 'threw') this.#calls.get(message.call)?.(new Error(message.message));
    else if (message.type === 'dying') this.#end(`it ended: ${message.message}`);
  }

  /** Of this process; the next question has another. What is open has no verdict. */
  #end(why: string): void {
    const child = this.#child;
    this.#child = undefined;
    this.#starting = undefined;
    child?.kill('SIGKILL');
    for (const settle of this.#calls.values()) settle(new Error(why));
  }

  #send(message: MessageToJudge): void {
    // A closed channel is seen by its end; the callback keeps it from being thrown here as well.
    this.#child?.send(message, () => {});
  }

  /** Where the module lies, and its own words, are for the log only. */
  #unfit(why: string, words = ''): DarkroomError {
    const { module } = this.#options;
    const told = words === '' ? '' : `: ${words}`;
    return new DarkroomError('internal', 'executor.start', `JUDGE is ${module}: ${why}${told}`);
  }
}
