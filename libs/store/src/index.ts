export { type AdmitRequestOptions, type AdmitRequestResult, admitRequest } from './admit-request.ts';
export { exportBullmqMetrics } from './bullmq-metrics.ts';
export { type CancelRequestOptions, type CancelRequestResult, cancelRequest } from './cancel-request.ts';
export { dropRequest, type DropRequestResult } from './drop-request.ts';
export { createEventHub, type EventHub } from './event-hub.ts';
export { expireRequests } from './expire-requests.ts';
export { closeJob, type Finish, type FinishOutcome, finishRequest } from './finish-request.ts';
export type { KeySize } from './key-sizes.ts';
export * from './load-failures.ts';
export { type ModelKeys, modelKeys, modelsKey, queueName, webhooksTag } from './keys.ts';
export * from './idempotency-key.ts';
export { type Delivery, leaseBatch, type LeaseBatchOptions, type LeaseOutcome } from './lease-batch.ts';
export { type DeadRequest, listDead } from './list-dead.ts';
export { listModelIds, listModels, type ModelPool, publishModel, readPool, readPools } from './model-registry.ts';
export { pauseModel, resumeModel } from './pause-model.ts';
export { createRateLimiter, type RateCount, type RateLimiter, type RateLimiterOptions } from './rate-limiter.ts';
export { readEvents, type ReadEventsOptions } from './read-events.ts';
export { countFinished, type FailedRequest, listFailed } from './read-finished.ts';
export { readOutput, readOutputChunk } from './read-output.ts';
export { type MeasuredWorker, readPaces } from './read-paces.ts';
export { readRequest, type ReadRequestResult } from './read-request.ts';
export { type ModelStats, readStats, type Tally, type TalliedDurations } from './read-stats.ts';
export { readTrace } from './read-trace.ts';
export { readWorkers, type WorkerStatus } from './read-workers.ts';
export { isStoreReachable, readRedisMemory, type RedisMemory } from './redis-health.ts';
export * from './register-worker.ts';
export { giveBackJob, giveBackRequest, listRecovered, type RequeueOutcome, requeueStalled } from './requeue-request.ts';
export { retryRequest, type RetryRequestOptions, type RetryRequestResult } from './retry-request.ts';
export { escapeGlob, scanKeys } from './scan-keys.ts';
export { retryMaxMs } from './open-redis.ts';
export { connectStore, type ConnectStoreOptions, type StoreConnection } from './store-connection.ts';
export { storeOptions, type StoreSettings } from './store-options.ts';
export { sweepLeaks, type SweepLeaksResult } from './sweep-leaks.ts';
export { type JobTaker, openJobTaker, type OpenJobTakerOptions, type TakenJob } from './take-jobs.ts';
export { isUnavailable, untilAnswered } from './until-answered.ts';
export { createWakeups, type Wakeups } from './wakeups.ts';
export * from './webhook-delivery.ts';
export { checkServer, type ServerVerdict } from './check-server.ts';
export { createWebhookId } from './webhook-id.ts';
export { dropOutboxEntries, type OutboxEntry, takeOutbox, type TakeOutboxOptions } from './webhook-outbox.ts';
export { readWebhookSecret } from './webhook-secret.ts';
export {
  openWebhookWorker,
  type OpenWebhookWorkerOptions,
  type SendOutcome,
  type WebhookWorker,
} from './webhook-worker.ts';
export { resumeWorker, type ResumeWorkerResult, withdrawWorker } from './withdraw-worker.ts';
export { type InboxMessage, type LeasedRequest, openInbox, type WorkerInbox } from './worker-inbox.ts';
export * from './write-progress.ts';
