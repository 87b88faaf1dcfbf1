/** Webhook deliveries: jobs of one BullMQ queue. */
import type { Job } from 'bullmq';
import type { StoreConnection } from '../connection/store-connection.ts';
import { mayBeOwnedBy } from './webhook-id.ts';

/** A message to one receiver; the same in all attempts. */
export interface WebhookMessage {
  /** Value of the `webhook-id` header. */
  id: string;
  owner: string;
  requestId: string;
  /** Type of the payload, such as `request.succeeded`. */
  type: string;
  url: string;
  /** JSON body. */
  payload: string;
}

/** A delivery that has not succeeded; the job of one that has is removed. */
export type WebhookDelivery = ReturnType<typeof toDelivery>;
export type DeliveryState = 'pending' | 'failed';

const jobStates = { pending: ['wait', 'active', 'delayed'], failed: ['failed'] } as const;
/** How many failed deliveries are retained for a resend, and for how long, s. */
const failedJobs = { age: 7 * 86_400, count: 10_000 };
/** Max job ids that a list reads. */
const scanLimit = 10_000;
/** How long a delivered message is not enqueued again, ms: a slow sender may have read the same outbox entry. */
const deduplicationMs = 3_600_000;

/** Enqueues messages, except those that are enqueued already or were delivered recently. One round trip. */
export async function enqueueWebhooks(
  store: StoreConnection,
  messages: readonly WebhookMessage[],
  { attempts }: { attempts: number },
): Promise<void> {
  await store.deliveries().addBulk(
    messages.map((message) => ({
      name: message.type,
      data: message,
      opts: {
        jobId: message.id,
        deduplication: { id: message.id, ttl: deduplicationMs },
        attempts,
        backoff: { type: 'custom' },
        removeOnFail: failedJobs,
        stackTraceLimit: 1,
      },
    })),
  );
}

/** Returns an owner's deliveries, newest first: failed ones by the time they failed, pending ones by their request. */
export async function listDeliveries(
  store: StoreConnection,
  owner: string,
  { state, limit }: { state: DeliveryState; limit: number },
): Promise<WebhookDelivery[]> {
  const queue = store.deliveries();
  const ids = await queue.getRanges([...jobStates[state]], 0, scanLimit - 1, false);
  const own = ids.filter((id) => mayBeOwnedBy(id, owner));
  // The ids contain ULIDs, which sort by time.
  if (state === 'pending') own.sort((left, right) => (left < right ? 1 : -1));
  const jobs = await Promise.all(own.slice(0, limit).map((id) => findDelivery(store, owner, id)));
  return jobs.filter((job) => job !== undefined).map((job) => toDelivery(job, state));
}

/**
 * Exports BullMQ's metrics of the queue in the Prometheus format, as the model `_webhooks`. Every series gets `labels`.
 */
export async function exportBullmqMetrics(store: StoreConnection, labels: Record<string, string>): Promise<string> {
  const page = await store.deliveries().exportPrometheusMetrics({ ...labels, model: '_webhooks' });
  return `${page.trimEnd()}\n`;
}

export type ResendResult = 'resent' | 'unknown' | 'pending';

/** Sends a failed delivery again under the same id, with all attempts. */
export async function resendDelivery(store: StoreConnection, owner: string, id: string): Promise<ResendResult> {
  const job = mayBeOwnedBy(id, owner) ? await findDelivery(store, owner, id) : undefined;
  if (job === undefined) return 'unknown';
  if (!(await job.isFailed())) return 'pending';
  try {
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
    return 'resent';
  } catch (error) {
    // A concurrent call was faster: -1 is BullMQ's code for a job that is gone, -3 for one that has not failed.
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === -1) return 'unknown';
    if (code === -3) return 'pending';
    throw error;
  }
}

async function findDelivery(store: StoreConnection, owner: string, id: string) {
  const job = (await store.deliveries().getJob(id)) as Job<WebhookMessage> | undefined;
  return job?.data.owner === owner ? job : undefined;
}

function toDelivery(job: Job<WebhookMessage>, state: DeliveryState) {
  const { id, requestId, type, url } = job.data;
  return {
    id,
    requestId,
    type,
    url,
    state,
    /** Attempts that failed. */
    attempts: job.attemptsMade,
    /** Why the last attempt failed; safe to show to the owner. */
    lastError: job.failedReason || undefined,
    createdAtMs: job.timestamp,
    /** When the last attempt failed. */
    failedAtMs: state === 'failed' ? job.finishedOn : undefined,
  };
}
