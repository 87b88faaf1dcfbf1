import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { DarkroomError, withTimeLimit } from '@darkroom/core';
import { z } from 'zod';
import { findModule, type ModuleSetting } from '../module/find-module.ts';
import { ModuleChild } from '../module/module-child.ts';
import type { CallMessage } from '../module/module-message.ts';
import { type JudgedSubject, maxReasonLength } from '../module/own-judge.ts';
import { wellFormed } from '../upstream/http/upstream-error.ts';

export interface JudgeOptions {
  /** Value of JUDGE: a path that begins with . or /, or the name of a package. */
  module: string;
  /** Id of the model whose requests are moderated. */
  model: string;
  /** Timeout of a verdict, ms, counted from when the process is running. */
  timeoutMs: number;
}

/** Outcome of moderation: `reason` is present if the subject is rejected. */
export interface Verdict {
  readonly reason?: string;
}

/** The process ended, or was killed, with several questions open, any of which may have caused it. */
class EndedWithOthers extends Error {}

/** Longest time for a verdict, ms. */
const maxVerdictMs = 10_000;
/** Timeout of `createJudge`, as a multiple of the timeout of a verdict. */
const startFactor = 10;
/** Max time that a process takes to answer a ping, and to exit once it is killed. */
const maxPongMs = 1000;
const maxExitMs = 1000;
const maxBytes = { yielded: 0, returned: 4096 };

const infoSchema = z.object({ prompt: z.boolean(), image: z.boolean() });
const verdictSchema = z.object({ allowed: z.boolean(), reason: z.string() });

/**
 * Calls a moderation module in its own process. Returns a verdict or throws; callers let nothing pass without a
 * verdict. The process is replaced before the next question if it has ended, or did not react when a verdict was due.
 */
export class Judge {
  readonly #options: JudgeOptions;
  /** Aborts when the judge is stopped. */
  #life = new AbortController();
  #child: ModuleChild | undefined;
  #starting: Promise<ModuleChild> | undefined;
  #judges: z.infer<typeof infoSchema> = { prompt: false, image: false };
  /** Settles when no question is being retried alone. */
  #retries: Promise<unknown> = Promise.resolve();

  constructor(options: JudgeOptions) {
    this.#options = options;
  }

  /** @throws DarkroomError `model_unsupported` or `internal`, naming the setting, if it cannot start. */
  async start(): Promise<void> {
    await this.#running(this.#life.signal);
  }

  /** Returns true if the module moderates this type. */
  judges(type: JudgedSubject['type']): boolean {
    return this.#judges[type];
  }

  /**
   * Returns the module's verdict. If the process ends with several questions open, each is retried alone, in turn, so
   * that only the one that crashes it fails.
   *
   * @throws DarkroomError `unavailable` if there is no verdict, with the reason for the log as its cause.
   */
  async judge(question: JudgedSubject): Promise<Verdict> {
    const { signal } = this.#life;
    await this.#retries;
    try {
      return await this.#query(question, signal).catch((error: unknown) => {
        if (error instanceof EndedWithOthers) return this.#retryAlone(question, signal);
        throw error;
      });
    } catch (error) {
      const what = question.type === 'prompt' ? 'the prompt' : 'the image';
      const message = `moderation gave no verdict on ${what}, and nothing passes without one; try again later`;
      throw new DarkroomError('unavailable', 'executor.judge', message, error);
    }
  }

  stop(): void {
    this.#life.abort();
    this.#life = new AbortController();
    this.#replace();
  }

  /** Retries a question once all earlier retries have settled; new questions wait meanwhile. */
  #retryAlone(question: JudgedSubject, signal: AbortSignal): Promise<Verdict> {
    const retry = this.#retries.then(() => this.#query(question, signal));
    this.#retries = retry.catch(() => {});
    return retry;
  }

  async #query(question: JudgedSubject, signal: AbortSignal): Promise<Verdict> {
    const child = await this.#running(signal);
    const { timeoutMs } = this.#options;
    const call = child.call({ request: question, maxBytes });
    const message = await child.nextOf(call, { timeoutMs });
    if (message === undefined && child.how === undefined) await this.#timeOut(child, call);
    child.forget(call);
    if (message !== undefined) return verdictOf(message);
    const how = child.how ?? 'its process did not exit when it was killed';
    throw child.callsAtEnd > 1 ? new EndedWithOthers(how) : new Error(how);
  }

  /** Abandons a call, or kills a process that would not react to an abort. */
  async #timeOut(child: ModuleChild, call: number): Promise<void> {
    const why = `no verdict within ${this.#options.timeoutMs / 1000} s`;
    if (await this.#isResponsive(child)) {
      child.abandon(call);
      throw new Error(why);
    }
    if (child === this.#child) this.#replace(why);
    // A killed process does not exit while it is stuck in a device call.
    await Promise.race([child.ended, delay(maxExitMs, undefined, { ref: false })]);
    if (child.callsAtEnd === 1) throw new Error(why);
  }

  /** Returns true if the process sent something within half of the timeout, or answers a ping. */
  async #isResponsive(child: ModuleChild): Promise<boolean> {
    if (child !== this.#child) return false;
    const limitMs = this.#options.timeoutMs / 2;
    if (child.silentMs < limitMs) return true;
    return Promise.race([child.ping(), delay(Math.min(maxPongMs, limitMs), false, { ref: false })]);
  }

  /** Returns the process, after starting it if there is none. */
  #running(signal: AbortSignal): Promise<ModuleChild> {
    if (signal.aborted) return Promise.reject(new Error('it was stopped'));
    if (this.#starting !== undefined) return this.#starting;
    const { timeoutMs } = this.#options;
    const starting = withTimeLimit(startFactor * timeoutMs, signal, (both) => this.#open(both));
    this.#starting = starting;
    starting.catch(() => {
      if (this.#starting === starting) this.#starting = undefined;
    });
    return starting;
  }

  async #open(signal: AbortSignal): Promise<ModuleChild> {
    const { module, model } = this.#options;
    const setting: ModuleSetting = { name: 'JUDGE', module };
    const specifier = await findModule(setting);
    if (signal.aborted) throw new Error('it was stopped');
    const child = new ModuleChild({ specifier, model, exportName: 'createJudge' });
    this.#child = child;
    void child.ended.then(() => child === this.#child && this.#replace());
    const limit = 'ten times the timeout of a verdict';
    this.#judges = await child.ready(setting, { signal, limit, read: readInfo });
    return child;
  }

  /** Kills the process; the next question starts another one. */
  #replace(reason?: string): void {
    const child = this.#child;
    this.#child = undefined;
    this.#starting = undefined;
    child?.kill(reason);
  }
}

/**
 * Returns the timeout of a verdict, ms. The engine sends no events while moderation is pending: a slow verdict must not
 * count as a hung engine.
 */
export function judgeTimeoutOf(engineTimeoutS: number): number {
  return Math.min(maxVerdictMs, engineTimeoutS * 500);
}

/** @throws Error, for the start error. */
function readInfo(info: unknown): z.infer<typeof infoSchema> {
  const { data } = infoSchema.safeParse(info);
  if (data === undefined) throw new Error('it did not report what it judges');
  return data;
}

function verdictOf(message: CallMessage): Verdict {
  if (message.type === 'threw') throw new Error(message.message);
  const { allowed, reason } = verdictSchema.parse(deserialize(message.value));
  return allowed ? {} : { reason: wellFormed(reason.slice(0, maxReasonLength)) };
}
