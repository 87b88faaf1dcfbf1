/** The sender's hands in the queue of deliveries. */
import { bullmq } from '../connection/bullmq.ts';
import { deliveriesName, systemKeys } from '../connection/keys.ts';
import { finishedCounts, type StoreConnection } from '../connection/store-connection.ts';
import type { WebhookMessage } from './webhook-delivery.ts';

/**
 * `postponed`: not tried, and not counted as an attempt. `failed`: tried again after a while unless it is `final`;
 * the reason is shown to the owner.
 */
export type SendOutcome =
  | { status: 'delivered' }
  | { status: 'postponed'; delayMs: number }
  | { status: 'failed'; reason: string; isFinal: boolean };

export interface OpenWebhookWorkerOptions {
  concurrency: number;
  /** How long a delivery stays with a process that no longer renews its lock. */
  lockMs: number;
  /** The pause after an attempt, counted from 1. */
  retryDelayMs: (attempt: number) => number;
  send: (message: WebhookMessage, attempt: number) => Promise<SendOutcome>;
  onError: (error: Error) => void;
}

/** A sender that dies must not use up a delivery's attempts, however often. */
const unboundedStalls = 1_000_000;

/** Starts to take deliveries as they fall due. `close` takes nothing any more and waits for what is under way. */
export function openWebhookWorker(
  store: StoreConnection,
  { concurrency, lockMs, retryDelayMs, send, onError }: OpenWebhookWorkerOptions,
): { close(): Promise<void> } {
  const { DelayedError, UnrecoverableError, Worker } = bullmq();
  const worker = new Worker<WebhookMessage>(
    deliveriesName,
    async (job, token) => {
      const outcome = await send(job.data, job.attemptsMade + 1);
      switch (outcome.status) {
        case 'delivered':
          return;
        case 'postponed':
          await job.moveToDelayed(Date.now() + outcome.delayMs, token);
          throw new DelayedError();
        case 'failed':
          throw outcome.isFinal ? new UnrecoverableError(outcome.reason) : new Error(outcome.reason);
      }
    },
    {
      connection: store.redis,
      prefix: systemKeys(store.prefix).deliveriesBase,
      concurrency,
      lockDuration: lockMs,
      stalledInterval: lockMs,
      maxStalledCount: unboundedStalls,
      metrics: finishedCounts,
      settings: { backoffStrategy: retryDelayMs },
    },
  );
  worker.on('error', onError);
  // A connection that was closed under it brings nothing that could be waited for.
  return { close: () => worker.close(store.redis.status === 'end') };
}
