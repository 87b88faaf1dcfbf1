import { failureOf } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import type { ActiveRequest } from './active-request.ts';

/** Logs lost requests and unexpected errors with the details that only the log shows. */
export function logFailures(event: ExecutorEvent, active: ReadonlyMap<string, ActiveRequest>, log: Logger): void {
  if (event.type === 'request-lost') {
    const { code, message } = failureOf(event.message, event.code);
    const request_id = active.get(event.requestId)?.delivery.id;
    log.warn({ request_id, code, reason: message, stack: event.stack }, 'an attempt failed');
  }
  if (event.type === 'engine-lost') {
    const { code, message } = failureOf(event.message, event.code);
    for (const token of event.requestIds) {
      const request_id = active.get(token)?.delivery.id;
      log.warn({ request_id, code, reason: message, requests: event.requestIds.length }, 'an attempt failed');
    }
  }
  if (event.type !== 'request-failed' || event.cause === undefined) return;
  log.error({ request_id: active.get(event.requestId)?.delivery.id, cause: event.cause }, 'unexpected engine error');
}
