/**
 * Tells receivers what their requests come to. Any number of senders may do so at once: an entry of the outbox goes to
 * one of them, and so does a delivery. One that dies loses nothing, what it held is taken by others after a while.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, systemClock } from '@darkroom/core';
import { type Kinds, kinds as allKinds } from '@darkroom/kinds';
import { BaseService, type Logger, LoopsByName, Metrics } from '@darkroom/service';
import {
  dropOutboxEntries,
  enqueueWebhooks,
  type EventHub,
  listShards,
  openWebhookWorker,
  type OutboxEntry,
  type SendOutcome,
  signLinks,
  type StoreConnection,
  takeOutbox,
  type WebhookMessage,
} from '@darkroom/store';
import { deliverWebhook } from './deliver-webhook.ts';
import { createDeliveryPlaces } from './delivery-places.ts';
import { createRetrySchedule, type RetrySchedule } from './retry-schedule.ts';
import { type AttemptOutcome, createSenderMetrics, type SenderMetrics } from './sender-metrics.ts';
import { webhookMessage } from './webhook-payload.ts';

export interface WebhookSenderOptions {
  store: StoreConnection;
  wakeups: Pick<EventHub, 'listen'>;
  log: Logger;
  allowPrivate: boolean;
  /** How long a delivery stays with a sender that no longer renews its lock. */
  lockMs: number;
  schedule?: RetrySchedule;
  /** How long deliveries under way may take to finish when the process stops; then they are given back. */
  stopGraceMs?: number;
  /** Entries that a sender took this long ago and still has are taken over: moving takes milliseconds. */
  reclaimAfterMs?: number;
  metrics?: Metrics;
  /** The kinds of work whose results it tells of; all there are. */
  kinds?: Kinds;
  clock?: Clock;
}

/** How long a lost wake-up can hold things up. */
const slowTickMs = 1000;
const moveLimit = 100;
/** Connections of one process at a time, and those of them that may be of one owner and go to one host. */
const concurrency = 64;
const perOwner = 32;
const perHost = 16;

export class WebhookSender extends BaseService<Required<Omit<WebhookSenderOptions, 'metrics' | 'wakeups'>>> {
  readonly #metrics: SenderMetrics;
  readonly #moving: LoopsByName;
  #stopping = new AbortController();
  #worker: ReturnType<typeof openWebhookWorker> | undefined;

  constructor({
    schedule = createRetrySchedule(),
    stopGraceMs = 3000,
    reclaimAfterMs = 10_000,
    clock = systemClock,
    kinds = allKinds,
    metrics,
    wakeups,
    ...options
  }: WebhookSenderOptions) {
    super({ ...options, schedule, stopGraceMs, reclaimAfterMs, clock, kinds });
    this.#metrics = createSenderMetrics(metrics ?? new Metrics({ app: 'webhook-sender', log: options.log }));
    this.#moving = new LoopsByName({
      name: 'move the outbox',
      discover: () => listShards(options.store),
      discoverEveryMs: slowTickMs,
      intervalMs: slowTickMs,
      runOnce: (model) => this.moveOnce(model),
      listen: (model, wake) => wakeups.listen(model, wake, 'webhooks'),
      log: options.log,
    });
  }

  /**
   * Moves a model's outbox to the queue of deliveries, until it is empty. A sender that dies on the way leaves entries to be
   * taken again, and their messages have the same ids then.
   */
  async moveOnce(model: string): Promise<void> {
    const { store, schedule, reclaimAfterMs } = this.options;
    let entries: OutboxEntry[];
    do {
      entries = await takeOutbox(store, model, { limit: moveLimit, reclaimAfterMs });
      if (entries.length === 0) return;
      const messages = await Promise.all(entries.map((entry) => this.#messageOf(entry)));
      await enqueueWebhooks(store, messages, { attempts: schedule.attempts });
      const entryIds = entries.map(({ entryId }) => entryId);
      await dropOutboxEntries(store, model, entryIds);
      this.#metrics.moved.inc(entries.length);
    } while (entries.length >= moveLimit);
  }

  protected override async onStart(): Promise<void> {
    const { store, schedule, allowPrivate, clock, lockMs, log } = this.options;
    this.#stopping = new AbortController();
    // Each delivery listens.
    setMaxListeners(0, this.#stopping.signal);
    const takePlace = createDeliveryPlaces({ perOwner, perHost });
    const context = { store, allowPrivate, takePlace, clock, stopping: this.#stopping.signal };
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
    const cutting = setTimeout(() => this.#stopping.abort(), this.options.stopGraceMs);
    await this.#worker?.close();
    clearTimeout(cutting);
    this.#worker = undefined;
  }

  /** The same each time: links count from the event. */
  async #messageOf(entry: OutboxEntry): Promise<WebhookMessage> {
    const { store, kinds } = this.options;
    const { owner, event } = entry;
    return webhookMessage(entry, kinds, await signLinks(store, { owner, fromMs: event.timestampMs }));
  }

  /** Receivers' URLs may hold secrets of theirs: only the host is logged. */
  #report({ id, requestId, url }: WebhookMessage, attempt: number, outcome: SendOutcome): AttemptOutcome {
    const { log, schedule } = this.options;
    const facts = { webhook_id: id, request_id: requestId, host: new URL(url).host, attempt };
    if (outcome.status === 'delivered') log.info(facts, 'delivered');
    if (outcome.status !== 'failed') return outcome.status;
    const isLast = outcome.isFinal || attempt >= schedule.attempts;
    log.warn({ ...facts, reason: outcome.reason }, isLast ? 'failed for good' : 'failed, to be tried again');
    return isLast ? 'gave_up' : 'failed';
  }
}
