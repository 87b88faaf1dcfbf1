import type { ExecutorEvent } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import type { ActiveRequest } from './active-request.ts';

/** Logs what an engine says of a request for the log only: why it was lost, and by what it failed that nobody has foreseen. */
export function logTrouble(event: ExecutorEvent, active: ReadonlyMap<string, ActiveRequest>, log: Logger): void {
  if (event.type === 'request-lost') log.warn({ reason: event.message }, 'a request was lost');
  if (event.type !== 'request-failed' || event.cause === undefined) return;
  log.error(
    { request_id: active.get(event.requestId)?.delivery.id, cause: event.cause },
    'the engine failed unforeseen',
  );
}
