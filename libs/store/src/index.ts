export { workerLists } from './connection/keys.ts';
export { readTime } from './connection/read-time.ts';
export { type AskBytes, type Attachments, readAttachment, readAttachments } from './bytes/attachments.ts';
export { type ByteStore, bytesUnavailable } from './bytes/byte-store.ts';
export { encodeHeld, type Held, keepBytes } from './bytes/keep-bytes.ts';
export { openBytes } from './bytes/open-bytes.ts';
export { BytesSweeper } from './bytes/sweep-bytes.ts';
export * from './connection/redis-health.ts';
export * from './connection/store-connection.ts';
export { isUnavailable, untilAnswered } from './connection/until-answered.ts';

export { admitRequest, type AdmitRequestOptions, type AdmitRequestResult } from './requests/admit-request.ts';
export { cancelRequest, type CancelRequestResult } from './requests/cancel-request.ts';
export { dropRequest } from './requests/drop-request.ts';
export { expireRequests } from './requests/expire-requests.ts';
export { anyOwner, newRequestId } from './requests/request-ids.ts';
export * from './requests/idempotency-key.ts';
export { type DeadRequest, listDead } from './requests/list-dead.ts';
export { createRateLimiter, type RateLimiter } from './requests/rate-limiter.ts';
export { readRequest } from './requests/read-request.ts';
export { retryRequest } from './requests/retry-request.ts';

export * from './dispatch/dispatch-requests.ts';
export * from './dispatch/read-dispatchable.ts';

export * from './workers/call-workers.ts';
export * from './workers/deal-workers.ts';
export * from './workers/drain-worker.ts';
export * from './workers/load-failures.ts';
export * from './workers/model-registry.ts';
export { readWorkers, type WorkerStatus } from './workers/read-workers.ts';
export * from './workers/register-worker.ts';
export * from './workers/reload-turn.ts';
export * from './workers/sweep-workers.ts';
export {
  type InboxMessage,
  type LeasedRequest,
  openInbox,
  type OperatorMessage,
  type WorkerInbox,
} from './workers/worker-inbox.ts';

export { createEventHub, type EventHub } from './events/event-hub.ts';
export { readEvents, readLogEnd, readPreview } from './events/read-events.ts';
export { linkOutput, readOutput, readOutputChunk } from './events/read-output.ts';
export { readResumePoint } from './events/read-resume-point.ts';
export { checkSignedLink, signLinks, type SignLinksOptions } from './events/sign-links.ts';
export { readTexts } from './events/read-texts.ts';
export * from './events/write-batch.ts';

export * from './webhooks/webhook-delivery.ts';
export { createWebhookId } from './webhooks/webhook-id.ts';
export { dropOutboxEntries, type OutboxEntry, takeOutbox } from './webhooks/webhook-outbox.ts';
export { readWebhookSecret } from './webhooks/webhook-secret.ts';
export { openWebhookWorker, type SendOutcome } from './webhooks/webhook-worker.ts';

export * from './upkeep/read-stats.ts';
export * from './upkeep/sum-stats.ts';
export * from './upkeep/sweep-leaks.ts';
