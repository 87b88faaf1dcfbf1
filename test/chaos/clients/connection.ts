/** Calls that are made again until there is an answer, on this replica or the next. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';

/** It had no answer for so long. */
export class GaveUp extends Error {
  override name = 'GaveUp';
}

export interface Answer {
  status: number;
  text: string;
  bytes: Uint8Array;
}

/** A frozen API answers late, one whose Redis is away within 6 s. */
const answerMs = 15_000;
const patienceMs = 180_000;

export class Connection {
  readonly #urls: readonly string[];
  readonly #dice: Dice;

  constructor({ urls, dice }: { urls: readonly string[]; dice: Dice }) {
    this.#urls = urls;
    this.#dice = dice;
  }

  /** Of one of the replicas. */
  url(path: string): string {
    return this.#dice.pick(this.#urls) + path;
  }

  /** A pause before the next try. */
  pause(): Promise<void> {
    return delay(this.#dice.between(50, 600));
  }

  /** When to give up, ms since the epoch. */
  deadlineMs(): number {
    return Date.now() + patienceMs;
  }

  /** Throws {@link GaveUp}. */
  async ask(path: string, init: RequestInit = {}): Promise<Answer> {
    const deadlineMs = this.deadlineMs();
    for (;;) {
      const answer = await this.#try(path, init);
      if (typeof answer !== 'string' && answer.status < 500 && answer.status !== 429) return answer;
      const last = typeof answer === 'string' ? answer : `${answer.status} ${answer.text.slice(0, 200)}`;
      if (Date.now() > deadlineMs) throw new GaveUp(`${init.method ?? 'GET'} ${path}: ${last}`);
      await this.pause();
    }
  }

  /** What went wrong, where there was no whole answer. */
  async #try(path: string, init: RequestInit): Promise<Answer | string> {
    try {
      const response = await fetch(this.url(path), { ...init, signal: AbortSignal.timeout(answerMs) });
      const bytes = new Uint8Array(await response.arrayBuffer());
      return { status: response.status, bytes, text: new TextDecoder().decode(bytes) };
    } catch (error) {
      return String(error instanceof Error ? (error.cause ?? error) : error);
    }
  }
}
