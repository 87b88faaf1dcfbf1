/** Clients that ask, follow, poll, cancel and fetch all the time, each as a real one would, and write down what they see. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';
import { type Body, digestOf, type History } from '../history.ts';
import { keptMs } from '../system/settings.ts';
import { chooseVariant, type Variant } from './bodies.ts';
import { Connection, GaveUp } from './connection.ts';
import { readEvents } from './reader.ts';

export interface ClientOptions {
  history: History;
  dice: Dice;
  /** Addresses of the APIs; each call takes one of them. */
  urls: readonly string[];
  webhookUrl: string;
}

/** What is left of a request's time when it is read once more, ms. */
const lateMs = 10_000;
const ends = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** What a client means to do with a request. */
interface Intention {
  variant: Variant;
  hasWebhook: boolean;
  isToExpire: boolean;
  isToCancel: boolean;
  isRepeated: boolean;
  follows: 'stream' | 'poll' | 'both';
  readsAgain: boolean;
  readsLate: boolean;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #connection: Connection;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#connection = new Connection(options);
  }

  /** Requests one after the other until the signal. */
  async run(variants: ReadonlyMap<string, readonly Variant[]>, over: AbortSignal): Promise<void> {
    const late: Promise<void>[] = [];
    while (!over.aborted) {
      const intention = this.#intend(chooseVariant(variants, this.#options.dice));
      const ended = await this.request(intention);
      if (intention.readsLate && ended !== undefined) late.push(this.#readLate(ended, over));
    }
    await Promise.all(late);
  }

  /** One request, to its end and what came of it. */
  async request(intention: Intention): Promise<Ended | undefined> {
    const key = randomUUID();
    return this.#unlessGivenUp(key, async () => {
      const request = await this.#submit(key, intention);
      if (request === undefined) return undefined;
      const again = intention.isRepeated ? this.#post(key, this.#bodyOf(intention)) : undefined;
      const following = this.#follow(request, intention);
      const [endedAtMs] = await Promise.all([following, this.#cancel(request, intention), again]);
      await this.#fetchResult(request);
      if (intention.readsAgain) await readEvents(this.#connection, this.#options, request);
      return endedAtMs === undefined ? undefined : { key, request, endedAtMs };
    });
  }

  /** All of it once more, when its time is almost over. */
  async #readLate({ key, request, endedAtMs }: Ended, over: AbortSignal): Promise<void> {
    const dueMs = endedAtMs + keptMs - lateMs - Date.now();
    await delay(dueMs, undefined, { signal: over }).catch(() => {});
    if (over.aborted) return;
    this.#options.history.add({ what: 'late', request });
    await this.#unlessGivenUp(key, async () => {
      await this.#fetchResult(request);
      await readEvents(this.#connection, this.#options, request);
    });
  }

  async #unlessGivenUp<Result>(key: string, run: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof GaveUp)) throw error;
      this.#options.history.add({ what: 'gave-up', key, last: error.message });
      return undefined;
    }
  }

  #intend(variant: Variant): Intention {
    const { dice } = this.#options;
    return {
      variant,
      hasWebhook: dice.chance(0.3),
      isToExpire: dice.chance(0.02),
      isToCancel: dice.chance(0.08),
      isRepeated: dice.chance(0.05),
      follows: dice.pick(['stream', 'stream', 'poll', 'both']),
      readsAgain: dice.chance(0.15),
      readsLate: dice.chance(0.1),
    };
  }

  #bodyOf({ variant, hasWebhook, isToExpire }: Intention): Body {
    const webhook = { webhook_url: this.#options.webhookUrl, webhook_events: ['started', 'completed'] };
    return { ...variant.body, ...(hasWebhook && webhook), ...(isToExpire && { start_timeout_s: 0.2 }) };
  }

  async #submit(key: string, intention: Intention): Promise<string | undefined> {
    const { variant, hasWebhook, isToExpire } = intention;
    const body = this.#bodyOf(intention);
    const same = variant.same === undefined ? {} : { same: variant.same };
    this.#options.history.add({ what: 'submit', key, body, ...same, hasWebhook, isToExpire });
    return this.#post(key, body);
  }

  async #post(key: string, body: Body): Promise<string | undefined> {
    const { history } = this.#options;
    const response = await this.#connection.ask('/v1/predict', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify(body),
    });
    if (response.status !== 202 && response.status !== 200) {
      history.add({ what: 'refused', key, status: response.status });
      return undefined;
    }
    const { request_id: request } = JSON.parse(response.text) as { request_id: string };
    history.add({ what: 'accepted', key, request });
    return request;
  }

  /** When it ended, if its events were read. */
  async #follow(request: string, { follows }: Intention): Promise<number | undefined> {
    const { dice } = this.#options;
    const read = (): Promise<number | undefined> =>
      readEvents(this.#connection, this.#options, request, { leaves: dice.chance(0.2) });
    const [endedAtMs] = await Promise.all([
      follows === 'poll' ? undefined : read(),
      follows === 'both' ? read() : undefined,
      follows === 'stream' ? undefined : this.#poll(request),
    ]);
    return endedAtMs;
  }

  async #poll(request: string): Promise<void> {
    while (!ends.has(await this.#look(request, `?wait=${this.#options.dice.between(1, 5)}`)));
  }

  /** One poll; the state, and `expired` of one that is gone. */
  async #look(request: string, query = ''): Promise<string> {
    const { history } = this.#options;
    const { status, text } = await this.#connection.ask(`/v1/predict/${request}${query}`);
    if (status !== 200 && status !== 202) {
      history.add({ what: 'gone', request, status });
      return 'expired';
    }
    const { status: state, texts = [] } = JSON.parse(text) as { status: string; texts?: TextView[] };
    history.add({ what: 'poll', request, state });
    if (state === 'succeeded')
      for (const { index, text } of texts)
        history.add({ what: 'output', request, index, digest: digestOf(text), text });
    return state;
  }

  async #cancel(request: string, { isToCancel }: Intention): Promise<void> {
    const { dice, history } = this.#options;
    if (!isToCancel) return;
    await delay(dice.between(0, 600));
    const { status } = await this.#connection.ask(`/v1/predict/${request}`, { method: 'DELETE' });
    history.add({ what: 'cancel', request, status });
  }

  async #fetchResult(request: string): Promise<void> {
    const { history } = this.#options;
    const state = await this.#look(request);
    if (state !== 'succeeded' || !request.startsWith('emoji-sd')) return;
    const { text } = await this.#connection.ask(`/v1/predict/${request}`);
    const { images = [] } = JSON.parse(text) as { images?: { index: number }[] };
    for (const { index } of images) {
      const { status, bytes } = await this.#connection.ask(`/v1/predict/${request}/images/${index}`);
      if (status === 200) history.add({ what: 'output', request, index, digest: digestOf(bytes) });
      else history.add({ what: 'gone', request, status });
    }
  }
}

/** A request whose events were read to their end, and when that was written, by Redis' clock. */
interface Ended {
  key: string;
  request: string;
  endedAtMs: number;
}

interface TextView {
  index: number;
  text: string;
}

/** What the first of each variant does, before anything fails. */
export function undisturbed(variant: Variant): Intention {
  return {
    variant,
    hasWebhook: true,
    isToExpire: false,
    isToCancel: false,
    isRepeated: false,
    follows: 'stream',
    readsAgain: false,
    readsLate: false,
  };
}
