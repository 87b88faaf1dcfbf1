/** Deliveries of webhooks: jobs of one BullMQ queue. */
import type { Job } from 'bullmq';
import type { StoreConnection } from '../connection/store-connection.ts';
import { mayBeOwnedBy } from './webhook-id.ts';

/** One message to one receiver; what is sent does not change from attempt to attempt. */
export interface WebhookMessage {
  /** The `webhook-id`. */
  id: string;
  owner: string;
  requestId: string;
  /** The type of the payload, such as `request.succeeded`. */
  type: string;
  url: string;
  /** The body, JSON. */
  payload: string;
}

/** A delivery that has not succeeded. One that has leaves nothing behind. */
export type WebhookDelivery = ReturnType<typeof toDelivery>;
export type DeliveryState = 'pending' | 'failed';

const jobStates = { pending: ['wait', 'active', 'delayed'], failed: ['failed'] } as const;
/** Failed deliveries are kept to be sent again for this long, and not more than so many of them. */
const failedJobs = { age: 7 * 86_400, count: 10_000 };
/** Ids looked through for a list. */
const scanLimit = 10_000;
/** How long a message that was delivered cannot be enqueued again by a sender that was late with its copy. */
const deduplicationMs = 3_600_000;

/** Enqueues messages; those that are there already, or were delivered a short while ago, stay as they are. One round trip. */
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

/** An owner's deliveries, newest first: failed ones by their end, pending ones by their request. */
export async function listDeliveries(
  store: StoreConnection,
  owner: string,
  { state, limit }: { state: DeliveryState; limit: number },
): Promise<WebhookDelivery[]> {
  const queue = store.deliveries();
  const ids = await queue.getRanges([...jobStates[state]], 0, scanLimit - 1, false);
  const own = ids.filter((id) => mayBeOwnedBy(id, owner));
  // ULIDs sort by time.
  if (state === 'pending') own.sort((left, right) => (left < right ? 1 : -1));
  const jobs = await Promise.all(own.slice(0, limit).map((id) => findDelivery(store, owner, id)));
  return jobs.filter((job) => job !== undefined).map((job) => toDelivery(job, state));
}

/** What BullMQ says of the queue in Prometheus' format, as the model `_webhooks`. `labels` go on every series. */
export async function exportBullmqMetrics(store: StoreConnection, labels: Record<string, string>): Promise<string> {
  const page = await store.deliveries().exportPrometheusMetrics({ ...labels, model: '_webhooks' });
  return `${page.trimEnd()}\n`;
}

export type ResendResult = 'resent' | 'unknown' | 'pending';

/** Sends a failed delivery again, with all its attempts anew and under the same id. */
export async function resendDelivery(store: StoreConnection, owner: string, id: string): Promise<ResendResult> {
  const job = mayBeOwnedBy(id, owner) ? await findDelivery(store, owner, id) : undefined;
  if (job === undefined) return 'unknown';
  if (!(await job.isFailed())) return 'pending';
  try {
    await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
    return 'resent';
  } catch (error) {
    // Somebody else was faster: BullMQ's codes for a job that is gone, and for one that is not failed.
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
    /** Those that failed. */
    attempts: job.attemptsMade,
    /** Why the last attempt failed, in words that are safe to show. */
    lastError: job.failedReason || undefined,
    createdAtMs: job.timestamp,
    /** When it failed for good. */
    failedAtMs: state === 'failed' ? job.finishedOn : undefined,
  };
}
