import { cancelRequest } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { onAbort } from './wake-signal.ts';
import type { ApiCall } from '../http/api-env.ts';

/** Whether the client is still there to take what it asked for. */
export type ClientWatch = ReturnType<typeof watchClient>;

/** Cancels the request at once when its client goes away before it has its answer, unless it may come back. */
export function watchClient(c: ApiCall, context: ApiContext, { id, timeoutMs }: { id: string; timeoutMs: number }) {
  const hasKey = c.req.header('idempotency-key') !== undefined;
  const going = new AbortController();
  const gone: AbortSignal = going.signal;
  let isWatching = true;
  const leave = (): void => {
    if (!isWatching) return;
    isWatching = false;
    going.abort();
    // A process that stops closes connections itself, which says nothing about what the client wants.
    if (!hasKey && !context.draining.aborted) void cancel(context, id, c.get('owner'));
  };
  // It may have gone while the request was stored.
  const stopListening = onAbort([c.req.raw.signal], leave);
  return {
    /** The request has ended so long after it was stored. */
    timeoutMs,
    /** It has an Idempotency-Key by which it may come back to the same request. */
    hasKey,
    /** Aborted when it has gone. */
    gone,
    /** It has gone. */
    leave,
    /** It has its answer: what happens from here on is no going away. */
    stop(): void {
      isWatching = false;
      stopListening();
    },
  };
}

async function cancel({ askStore, log }: ApiContext, id: string, owner: string): Promise<void> {
  try {
    const { status } = await askStore((store) => cancelRequest(store, id, { owner }));
    log.info({ request_id: id, status }, 'the client went away');
  } catch {
    // Redis is away: it is drawn for nobody, or ends at its deadline.
    log.warn({ request_id: id }, 'could not cancel a request whose client went away');
  }
}
