/**
 * The former's hands in a model's queue: BullMQ's manual processing, where taking a job, keeping its lock and ending it
 * are separate acts that different processes can do.
 */
import { randomUUID } from 'node:crypto';
import { Worker } from 'bullmq';
import type { Delivery } from './lease-batch.ts';
import { queueName } from './keys.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** A job taken out of the queue, as its former groups it. */
export interface TakenJob extends Delivery {
  shapeKey: string;
  slots: number;
  /** Times a worker or former was lost while holding it. */
  stalls: number;
  /** W3C `traceparent` of what put it into the queue. */
  trace?: string;
}

export interface JobTaker {
  /** Takes up to `count` jobs in dispatch order, each locked for `lockMs` by a token of its own. One round trip's time. */
  take(count: number): Promise<TakenJob[]>;
  /** Renews locks; returns the ids that are lost. */
  renew(deliveries: readonly Delivery[]): Promise<string[]>;
  /** Puts stalled jobs (locks that ran out) back at the head of the queue; returns their ids. At most once per `stalledCheckMs`, however many call it. */
  recoverStalled(): Promise<string[]>;
  close(): Promise<void>;
}

export interface OpenJobTakerOptions {
  lockMs: number;
  stalledCheckMs: number;
  onError?: (error: Error) => void;
}

/** Attempts are bounded where leases are granted; BullMQ's own bound would also count lost formers against a request. */
const unboundedStalls = 1_000_000;

/** BullMQ keeps the stalled check to itself and its timer; a janitor wants to run one when it says so. */
class ManualWorker extends Worker {
  recoverStalled(): Promise<string[]> {
    return this.backend.moveStalledJobsToWait();
  }
}

export function openJobTaker(
  store: StoreConnection,
  model: string,
  { lockMs, stalledCheckMs, onError = () => {} }: OpenJobTakerOptions,
): JobTaker {
  const worker = new ManualWorker(queueName, null, {
    connection: store.redis,
    prefix: store.keysOf(model).base,
    autorun: false,
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: unboundedStalls,
  });
  worker.on('error', onError);

  async function takeOne(): Promise<TakenJob | undefined> {
    const token = randomUUID();
    const job = await worker.getNextJob(token, { block: false });
    if (job?.id === undefined) return undefined;
    const { shapeKey, slots } = job.data as { shapeKey: string; slots: number };
    const trace = traceOf(job.opts.telemetry?.metadata);
    return { id: job.id, token, shapeKey, slots, stalls: job.stalledCounter, ...(trace ? { trace } : {}) };
  }

  return {
    async take(count) {
      // All sent together and answered in order, so what comes out is what was chosen, in the order of dispatch.
      const { base, takings } = store.keysOf(model);
      const choosing = runScript(store.redis, 'choose-next', base, count, randomUUID()) as Promise<string>;
      const taking = Array.from({ length: count }, takeOne);
      const [member, ...taken] = await Promise.all([choosing, ...taking]);
      // Not awaited: what stays there is forgotten in a second.
      store.redis.zrem(takings, member).catch(() => {});
      return taken.filter((job) => job !== undefined);
    },
    async renew(deliveries) {
      if (deliveries.length === 0) return [];
      const ids = deliveries.map(({ id }) => id);
      return worker.extendJobLocks(
        ids,
        deliveries.map(({ token }) => token),
        lockMs,
      );
    },
    recoverStalled: () => worker.recoverStalled(),
    close: () => worker.close(),
  };
}

/** bullmq-otel keeps OpenTelemetry's carrier with the job, as JSON. */
function traceOf(metadata: string | undefined): string | undefined {
  return metadata === undefined ? undefined : (JSON.parse(metadata) as { traceparent?: string }).traceparent;
}
