/** HTTP calls that are retried on any replica until one answers. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';

/** Thrown when a call has no answer after all retries. */
export class GaveUp extends Error {
  override name = 'GaveUp';
}

export interface Answer {
  status: number;
  text: string;
  bytes: Uint8Array;
}

/** Timeout of one try. An API without Redis answers within 6 s; a frozen one answers late. */
const answerMs = 15_000;
const giveUpMs = 180_000;

export class Connection {
  readonly #urls: readonly string[];
  readonly #dice: Dice;

  constructor({ urls, dice }: { urls: readonly string[]; dice: Dice }) {
    this.#urls = urls;
    this.#dice = dice;
  }

  /** Returns the URL of a path on a random replica. */
  url(path: string): string {
    return this.#dice.pick(this.#urls) + path;
  }

  /** Waits before the next try. */
  pause(): Promise<void> {
    return delay(this.#dice.between(50, 600));
  }

  /** Returns when to give up, ms since the epoch. */
  deadlineMs(): number {
    return Date.now() + giveUpMs;
  }

  /** Calls the API; retries after 429, 5xx and network errors. Throws {@link GaveUp}. */
  async call(path: string, init: RequestInit = {}): Promise<Answer> {
    const deadlineMs = this.deadlineMs();
    for (;;) {
      const answer = await this.#try(path, init);
      if (typeof answer !== 'string' && answer.status < 500 && answer.status !== 429) return answer;
      const last = typeof answer === 'string' ? answer : `${answer.status} ${answer.text.slice(0, 200)}`;
      if (Date.now() > deadlineMs) throw new GaveUp(`${init.method ?? 'GET'} ${path}: ${last}`);
      await this.pause();
    }
  }

  /** Tries once; returns the error message without a complete answer. */
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
