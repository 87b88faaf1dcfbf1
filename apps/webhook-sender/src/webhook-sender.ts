/**
 * Delivers webhooks. Any number of senders may run at once: each outbox entry and each delivery goes to one of them. If
 * a sender dies, others take over its entries and deliveries after a timeout.
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
import { createConnectionSlots } from './connection-slots.ts';
import { createRetrySchedule, type RetrySchedule } from './retry-schedule.ts';
import { type AttemptOutcome, createSenderMetrics, type SenderMetrics } from './sender-metrics.ts';
import { webhookMessage } from './webhook-payload.ts';

export interface WebhookSenderOptions {
  store: StoreConnection;
  wakeups: Pick<EventHub, 'listen'>;
  log: Logger;
  allowPrivate: boolean;
  /** Prefix for API paths in messages; without it they stay relative. */
  publicUrl?: string;
  schedule?: RetrySchedule;
  /** Time that deliveries in progress get to finish on a stop before they are postponed, ms. */
  stopGraceMs?: number;
  /** Age at which another sender's outbox entries are taken over, ms; moving an entry takes milliseconds. */
  reclaimAfterMs?: number;
  metrics?: Metrics;
  /** Kinds of work whose results are delivered; all by default. */
  kinds?: Kinds;
  clock?: Clock;
}

/** Polling interval, which bounds the delay after a lost wake-up, ms. */
const slowTickMs = 1000;
const moveLimit = 100;
/** Max. connections per process, per owner and per host. */
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
    publicUrl = '',
    metrics,
    wakeups,
    ...options
  }: WebhookSenderOptions) {
    super({ ...options, schedule, stopGraceMs, reclaimAfterMs, clock, kinds, publicUrl });
    this.#metrics = createSenderMetrics(metrics ?? new Metrics({ app: 'webhook-sender', log: options.log }));
    this.#moving = new LoopsByName({
      name: 'move the outbox',
      discover: () => listShards(options.store),
      discoverEveryMs: slowTickMs,
      intervalMs: slowTickMs,
      runOnce: (shard) => this.moveOnce(shard),
      listen: (shard, wake) => wakeups.listen(shard, wake, 'webhooks'),
      log: options.log,
    });
  }

  /**
   * Moves the outbox of a shard to the delivery queue until it is empty. Entries of a sender that dies midway are moved
   * again, with the same message ids.
   */
  async moveOnce(shard: string): Promise<void> {
    const { store, schedule, reclaimAfterMs } = this.options;
    let entries: OutboxEntry[];
    do {
      entries = await takeOutbox(store, shard, { limit: moveLimit, reclaimAfterMs });
      if (entries.length === 0) return;
      const messages = await Promise.all(entries.map((entry) => this.#messageOf(entry)));
      await enqueueWebhooks(store, messages, { attempts: schedule.attempts });
      const entryIds = entries.map(({ entryId }) => entryId);
      await dropOutboxEntries(store, shard, entryIds);
      this.#metrics.moved.inc(entries.length);
    } while (entries.length >= moveLimit);
  }

  protected override async onStart(): Promise<void> {
    const { store, schedule, allowPrivate, clock, log } = this.options;
    this.#stopping = new AbortController();
    // Every delivery adds a listener.
    setMaxListeners(0, this.#stopping.signal);
    const acquireSlot = createConnectionSlots({ perOwner, perHost });
    const context = { store, allowPrivate, acquireSlot, clock, stopping: this.#stopping.signal };
    this.#worker = openWebhookWorker(store, {
      concurrency,
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

  /** Builds the message; deterministic, because links expire relative to the event. */
  async #messageOf(entry: OutboxEntry): Promise<WebhookMessage> {
    const { store, kinds, publicUrl } = this.options;
    const { owner, event } = entry;
    const sign = await signLinks(store, { owner, fromMs: event.timestampMs });
    const urlOf = (path: string): string => `${publicUrl}${path}`;
    return webhookMessage(entry, kinds, { sign, urlOf });
  }

  /** Logs the outcome. Only the host of the URL: the rest may contain the receiver's secrets. */
  #report({ id, requestId, url }: WebhookMessage, attempt: number, outcome: SendOutcome): AttemptOutcome {
    const { log, schedule } = this.options;
    const facts = { webhook_id: id, request_id: requestId, host: new URL(url).host, attempt };
    if (outcome.status === 'delivered') log.info(facts, 'webhook delivered');
    if (outcome.status !== 'failed') return outcome.status;
    const isLast = outcome.isFinal || attempt >= schedule.attempts;
    log.warn(
      { ...facts, reason: outcome.reason },
      isLast ? 'webhook failed; giving up' : 'webhook failed; will be retried',
    );
    return isLast ? 'gave_up' : 'failed';
  }
}
