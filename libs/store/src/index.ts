export { workerLists } from './connection/keys.ts';
export { readTime } from './connection/read-time.ts';
export { type CallBytes, type Attachments, readAttachment, readAttachments } from './bytes/attachments.ts';
export { type ByteStore, bytesUnavailable } from './byte-stores/byte-store.ts';
export { encodeStoredValue, isReference, type StoredValue, storeBytes } from './bytes/store-bytes.ts';
export { expiryOfFile } from './bytes/file-id.ts';
export { openBytes } from './byte-stores/open-bytes.ts';
export { BytesSweeper } from './bytes/sweep-bytes.ts';
export * from './connection/redis-health.ts';
export * from './connection/store-connection.ts';
export { isUnavailable, untilAnswered } from './connection/until-answered.ts';

export { admitRequest, type AdmitRequestOptions, type AdmitRequestResult } from './requests/admit-request.ts';
export { cancelRequest, type CancelRequestResult } from './requests/cancel-request.ts';
export { dropRequest } from './dead/drop-request.ts';
export { expireRequests } from './requests/expire-requests.ts';
export { anyOwner, newRequestId, readIdSecret, whyMissing } from './requests/request-ids.ts';
export * from './requests/idempotency-key.ts';
export { type DeadRequest, listDead, readDead, readFailure } from './dead/list-dead.ts';
export { createRateLimiter, type RateLimiter } from './requests/rate-limiter.ts';
export { pinRequest } from './requests/pin-request.ts';
export { readRequest } from './requests/read-request.ts';
export { type ListedRequest, type ListPosition, listRequests, readListed } from './requests/list-requests.ts';
export { retryRequest } from './dead/retry-request.ts';

export * from './dispatch/dispatch-requests.ts';
export * from './dispatch/read-dispatchable.ts';

export * from './workers/call-workers.ts';
export * from './workers/move-workers.ts';
export * from './workers/drain-worker.ts';
export * from './models/forget-model.ts';
export * from './models/load-failures.ts';
export * from './models/model-registry.ts';
export { readWorkers, type WorkerStatus } from './workers/read-workers.ts';
export * from './workers/register-worker.ts';
export * from './models/restart-lock.ts';
export { type EngineCall, type OperatorMessage, sendCommand, type WorkerCommand } from './workers/send-command.ts';
export * from './workers/sweep-workers.ts';
export { type InboxMessage, type LeasedRequest, openInbox, type WorkerInbox } from './workers/worker-inbox.ts';

export * from './files/stored-files.ts';
export * from './keys/stored-keys.ts';

export { createEventHub, type EventHub } from './events/event-hub.ts';
export { readEvents, readLogEnd, readOutputChunk, readPreview } from './events/read-events.ts';
export { linkOutput, readOutput } from './events/read-output.ts';
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
