/** Clients that submit, follow, poll, cancel and fetch requests like real ones, and record what they see. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';
import { type Body, digestOf, type History } from '../history.ts';
import { resultTtlMs } from '../system/settings.ts';
import { chooseVariant, imageModels, type Variant } from './bodies.ts';
import { Connection, GaveUp } from './connection.ts';
import { readEvents } from './reader.ts';

export interface ClientOptions {
  history: History;
  dice: Dice;
  /** Addresses of the APIs; each call takes one of them. */
  urls: readonly string[];
  webhookUrl: string;
}

/** Time before expiry at which a request is read once more, ms. */
const lateMs = 10_000;
const ends = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** Planned actions of a client for one request. */
interface RequestPlan {
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

  /** Runs requests one after another until the signal aborts. */
  async run(variants: ReadonlyMap<string, readonly Variant[]>, over: AbortSignal): Promise<void> {
    const late: Promise<void>[] = [];
    while (!over.aborted) {
      const plan = this.#planRequest(chooseVariant(variants, this.#options.dice));
      const ended = await this.request(plan);
      if (plan.readsLate && ended !== undefined) late.push(this.#readLate(ended, over));
    }
    await Promise.all(late);
  }

  /** Submits a request, follows it to its end and fetches its outputs. Returns undefined without a known end. */
  async request(plan: RequestPlan): Promise<Ended | undefined> {
    const key = randomUUID();
    return this.#unlessGivenUp(key, async () => {
      const request = await this.#submit(key, plan);
      if (request === undefined) return undefined;
      const again = plan.isRepeated ? this.#post(key, this.#bodyOf(plan)) : undefined;
      const following = this.#follow(request, plan);
      const [endedAtMs] = await Promise.all([following, this.#cancel(request, plan), again]);
      await this.#fetchResult(request);
      if (plan.readsAgain) await readEvents(this.#connection, this.#options, request);
      return endedAtMs === undefined ? undefined : { key, request, endedAtMs };
    });
  }

  /** Reads the result and the events once more shortly before the request expires. */
  async #readLate({ key, request, endedAtMs }: Ended, over: AbortSignal): Promise<void> {
    const dueMs = endedAtMs + resultTtlMs - lateMs - Date.now();
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

  #planRequest(variant: Variant): RequestPlan {
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

  #bodyOf({ variant, hasWebhook, isToExpire }: RequestPlan): Body {
    const webhook = { webhook_url: this.#options.webhookUrl, webhook_events: ['started', 'completed'] };
    return { ...variant.body, ...(hasWebhook && webhook), ...(isToExpire && { start_timeout_s: 0.2 }) };
  }

  async #submit(key: string, plan: RequestPlan): Promise<string | undefined> {
    const { variant, hasWebhook, isToExpire } = plan;
    const body = this.#bodyOf(plan);
    const same = variant.same === undefined ? {} : { same: variant.same };
    this.#options.history.add({ what: 'submit', key, body, ...same, hasWebhook, isToExpire });
    return this.#post(key, body);
  }

  async #post(key: string, body: Body): Promise<string | undefined> {
    const { history } = this.#options;
    const response = await this.#connection.call('/v1/predict', {
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

  /** Follows a request to its end; returns when it ended, if its events were read. */
  async #follow(request: string, { follows }: RequestPlan): Promise<number | undefined> {
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
    while (!ends.has(await this.#pollOnce(request, `?wait=${this.#options.dice.between(1, 5)}`)));
  }

  /** Polls once; returns the state, `expired` for a 404 or 410. */
  async #pollOnce(request: string, query = ''): Promise<string> {
    const { history } = this.#options;
    const { status, text } = await this.#connection.call(`/v1/predict/${request}${query}`);
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

  async #cancel(request: string, { isToCancel }: RequestPlan): Promise<void> {
    const { dice, history } = this.#options;
    if (!isToCancel) return;
    await delay(dice.between(0, 600));
    const { status } = await this.#connection.call(`/v1/predict/${request}`, { method: 'DELETE' });
    history.add({ what: 'cancel', request, status });
  }

  async #fetchResult(request: string): Promise<void> {
    const { history } = this.#options;
    const state = await this.#pollOnce(request);
    if (state !== 'succeeded' || !isOfImages(request)) return;
    const { text } = await this.#connection.call(`/v1/predict/${request}`);
    const { images = [] } = JSON.parse(text) as { images?: { index: number }[] };
    for (const { index } of images) {
      const { status, bytes } = await this.#connection.call(`/v1/predict/${request}/images/${index}`);
      if (status === 200) history.add({ what: 'output', request, index, digest: digestOf(bytes) });
      else history.add({ what: 'gone', request, status });
    }
  }
}

/** Returns true for a request for images, by the model in its id. */
function isOfImages(request: string): boolean {
  return imageModels.some((model) => request.startsWith(`${model}-`));
}

/** A request whose terminal event was read. `endedAtMs`: when that was written, by Redis' clock. */
interface Ended {
  key: string;
  request: string;
  endedAtMs: number;
}

interface TextView {
  index: number;
  text: string;
}

/** Returns the plan of the reference request of each variant, before the first fault. */
export function referencePlan(variant: Variant): RequestPlan {
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
