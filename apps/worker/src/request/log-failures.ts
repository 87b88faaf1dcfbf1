import { failureOf } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import type { ActiveRequest } from './active-request.ts';

/** Logs lost requests and unexpected errors with the details that only the log shows. */
export function logFailures(event: ExecutorEvent, active: ReadonlyMap<string, ActiveRequest>, log: Logger): void {
  const idOf = (token: string): string | undefined => active.get(token)?.delivery.id;
  if (event.type === 'request-lost' || event.type === 'engine-lost') {
    const { code, message: reason } = failureOf(event.message, event.code);
    const tokens = event.type === 'engine-lost' ? event.requestIds : [event.requestId];
    const details = event.type === 'engine-lost' ? { requests: tokens.length } : { stack: event.stack };
    for (const token of tokens) log.warn({ request_id: idOf(token), code, reason, ...details }, 'an attempt failed');
  }
  if (event.type !== 'request-failed' || event.cause === undefined) return;
  log.error({ request_id: idOf(event.requestId), cause: event.cause }, 'unexpected engine error');
}
