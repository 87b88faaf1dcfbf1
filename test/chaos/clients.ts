/** Clients that ask, follow, poll, cancel and fetch all the time, each as a real one would, and write down what they see. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { chooseVariant, type Variant } from './bodies.ts';
import { Connection, GaveUp } from './connection.ts';
import type { Dice } from './dice.ts';
import { type Body, digestOf, type History } from './history.ts';
import { readEvents } from './reader.ts';

export interface ClientOptions {
  history: History;
  dice: Dice;
  /** Addresses of the APIs; each call takes one of them. */
  urls: readonly string[];
  webhookUrl: string;
}

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
    while (!over.aborted) await this.request(this.#intend(chooseVariant(variants, this.#options.dice)));
  }

  /** One request, to its end and what came of it. */
  async request(intention: Intention): Promise<void> {
    const { history } = this.#options;
    const key = randomUUID();
    let asked = 'submit';
    try {
      const request = await this.#submit(key, intention);
      if (request === undefined) return;
      asked = request;
      const again = intention.isRepeated ? this.#post(key, this.#bodyOf(intention)) : undefined;
      await Promise.all([this.#follow(request, intention), this.#cancel(request, intention), again]);
      await this.#fetchResult(request);
      if (intention.readsAgain) await readEvents(this.#connection, this.#options, request);
    } catch (error) {
      if (!(error instanceof GaveUp)) throw error;
      history.add({ what: 'gave-up', key, asked, last: error.message });
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

  async #follow(request: string, { follows }: Intention): Promise<void> {
    const { dice } = this.#options;
    const read = (): Promise<void> =>
      readEvents(this.#connection, this.#options, request, { leaves: dice.chance(0.2) });
    await Promise.all([
      ...(follows === 'poll' ? [] : [read()]),
      ...(follows === 'both' ? [read()] : []),
      ...(follows === 'stream' ? [] : [this.#poll(request)]),
    ]);
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
  };
}
