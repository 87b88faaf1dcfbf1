/**
 * Tells receivers what their requests come to. Any number of senders may do so at once: an entry of the outbox goes to
 * one of them, and so does a delivery. One that dies loses nothing, what it held is taken by others after a while.
 */
import { type Clock, systemClock } from '@darkroom/core';
import { type Kinds, kinds as allKinds } from '@darkroom/kinds';
import { BaseService, type Logger, LoopsByName, Metrics } from '@darkroom/service';
import {
  listModelIds,
  openWebhookWorker,
  type SendOutcome,
  type StoreConnection,
  type Wakeups,
  type WebhookMessage,
  type WebhookWorker,
} from '@darkroom/store';
import { deliverWebhook } from './deliver-webhook.ts';
import { createDeliveryPlaces } from './delivery-places.ts';
import { moveOutbox } from './move-outbox.ts';
import { createPostWebhook } from './post-webhook.ts';
import { createRetrySchedule, type RetrySchedule } from './retry-schedule.ts';
import { type AttemptOutcome, createSenderMetrics, type SenderMetrics } from './sender-metrics.ts';

export interface WebhookSenderOptions {
  store: StoreConnection;
  wakeups: Wakeups;
  log: Logger;
  allowPrivate: boolean;
  /** How long a delivery stays with a sender that no longer renews its lock. */
  lockMs: number;
  schedule?: RetrySchedule;
  /** How long deliveries under way may take to finish when the process stops; then they are given back. */
  stopGraceMs?: number;
  metrics?: Metrics;
  /** The kinds of work whose results it tells of; all there are. */
  kinds?: Kinds;
  clock?: Clock;
}

/** How long a lost wake-up can hold things up. */
const slowTickMs = 1000;
/** Entries moved at a time. */
const moveLimit = 100;
/** Entries that a sender took this long ago and still has are taken over: moving takes milliseconds. */
const reclaimAfterMs = 10_000;
/** Connections of one process at a time, and those of them that may be of one owner and go to one host. */
const concurrency = 64;
const perOwner = 32;
const perHost = 16;

export class WebhookSender extends BaseService {
  readonly #options: Required<Omit<WebhookSenderOptions, 'metrics'>>;
  readonly #metrics: SenderMetrics;
  readonly #moving: LoopsByName;
  readonly #listeners = new Map<string, () => void>();
  #stopping = new AbortController();
  #worker: WebhookWorker | undefined;

  constructor({
    schedule = createRetrySchedule(),
    stopGraceMs = 3000,
    clock = systemClock,
    kinds = allKinds,
    metrics,
    ...options
  }: WebhookSenderOptions) {
    super();
    this.#options = { ...options, schedule, stopGraceMs, clock, kinds };
    this.#metrics = createSenderMetrics(metrics ?? new Metrics({ app: 'webhook-sender', log: options.log }));
    this.#moving = new LoopsByName({
      name: 'move the outbox',
      discover: () => listModelIds(options.store),
      discoverEveryMs: slowTickMs,
      intervalMs: slowTickMs,
      runOnce: (model) => this.moveOnce(model),
      log: options.log,
    });
  }

  /** Moves a model's outbox to the queue of deliveries, until it is empty. */
  async moveOnce(model: string): Promise<void> {
    const { store, schedule, kinds } = this.#options;
    await this.#listen(model);
    let moved = moveLimit;
    while (moved >= moveLimit) {
      moved = await moveOutbox(store, model, {
        kinds,
        limit: moveLimit,
        reclaimAfterMs,
        attempts: schedule.attempts,
      });
      this.#metrics.moved.inc(moved);
    }
  }

  protected override async onStart(): Promise<void> {
    const { store, schedule, allowPrivate, clock, lockMs, log } = this.#options;
    this.#stopping = new AbortController();
    const post = createPostWebhook({ allowPrivate });
    const places = createDeliveryPlaces({ perOwner, perHost });
    const context = { store, post, places, clock, stopping: this.#stopping.signal };
    this.#worker = openWebhookWorker(store, {
      concurrency,
      lockMs,
      retryDelayMs: (attempt) => schedule.delayMs(attempt),
      send: async (message, attempt) => {
        const startedAtMs = performance.now();
        const outcome = await deliverWebhook(context, message);
        const seconds = (performance.now() - startedAtMs) / 1000;
        this.#metrics.attempts.observe({ outcome: this.#report(message, attempt, outcome) }, seconds);
        return outcome;
      },
      onError: (error) => log.warn({ reason: error.message }, 'no connection to Redis'),
    });
    await this.#moving.start();
  }

  protected override async onStop(): Promise<void> {
    await this.#moving.stop();
    for (const stop of this.#listeners.values()) stop();
    this.#listeners.clear();
    const cutting = setTimeout(() => this.#stopping.abort(), this.#options.stopGraceMs);
    await this.#worker?.close();
    clearTimeout(cutting);
    this.#worker = undefined;
  }

  async #listen(model: string): Promise<void> {
    if (this.#listeners.has(model)) return;
    const stop = await this.#options.wakeups.listen(model, () => void this.#moving.trigger(model), 'webhooks');
    this.#listeners.set(model, stop);
  }

  /** Receivers' URLs may hold secrets of theirs: only the host is logged. */
  #report({ id, requestId, url }: WebhookMessage, attempt: number, outcome: SendOutcome): AttemptOutcome {
    const { log, schedule } = this.#options;
    const facts = { webhook_id: id, request_id: requestId, host: new URL(url).host, attempt };
    if (outcome.status === 'delivered') log.info(facts, 'delivered');
    if (outcome.status !== 'failed') return outcome.status;
    const isLast = outcome.isFinal || attempt >= schedule.attempts;
    log.warn({ ...facts, reason: outcome.reason }, isLast ? 'failed for good' : 'failed, to be tried again');
    return isLast ? 'gave_up' : 'failed';
  }
}
