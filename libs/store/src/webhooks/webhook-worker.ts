/** Takes webhook deliveries from the BullMQ queue. */
import { bullmq } from '../connection/bullmq.ts';
import { deliveriesName, systemKeys } from '../connection/keys.ts';
import { finishedCounts, type StoreConnection } from '../connection/store-connection.ts';
import type { WebhookMessage } from './webhook-delivery.ts';

/**
 * `postponed`: not attempted, and not counted as an attempt. `failed`: retried later unless `isFinal`; the reason is
 * shown to the owner.
 */
export type SendOutcome =
  | { status: 'delivered' }
  | { status: 'postponed'; delayMs: number }
  | { status: 'failed'; reason: string; isFinal: boolean };

export interface OpenWebhookWorkerOptions {
  concurrency: number;
  /** Returns the delay after an attempt (counted from 1), ms. */
  retryDelayMs: (attempt: number) => number;
  send: (message: WebhookMessage, attempt: number) => Promise<SendOutcome>;
  onError: (error: Error) => void;
}

/** A delivery goes to another process if its lock is not renewed for this long, ms. */
const lockMs = 5000;
/** No limit on stalls: a sender that dies must not use up the attempts of a delivery. */
const unboundedStalls = 1_000_000;

/** Starts to process deliveries as they fall due. `close` stops taking new ones and waits for those under way. */
export function openWebhookWorker(
  store: StoreConnection,
  { concurrency, retryDelayMs, send, onError }: OpenWebhookWorkerOptions,
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
  // Force the close if the connection was closed already: waiting for jobs would never end.
  return { close: () => worker.close(store.redis.status === 'end') };
}
