import { cancelRequest } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { onAbort } from '../follow/tail-events.ts';
import type { ApiCall } from '../http/api-env.ts';

/** The connection of the client that waits for a request. */
export type ClientWatch = ReturnType<typeof watchClient>;

/** Cancels a request when its client disconnects before the response, unless the client sent an Idempotency-Key. */
export function watchClient(c: ApiCall, context: ApiContext, { id, timeoutMs }: { id: string; timeoutMs: number }) {
  const hasKey = c.req.header('idempotency-key') !== undefined;
  const disconnect = new AbortController();
  const gone: AbortSignal = disconnect.signal;
  let isWatching = true;
  const leave = (): void => {
    if (!isWatching) return;
    isWatching = false;
    disconnect.abort();
    // Do not cancel while the process is stopping: it closes connections itself.
    if (!hasKey && !context.draining.aborted) void cancel(context, id, c.get('owner'));
  };
  // The client may have disconnected while the request was stored: then `onAbort` calls `leave` at once.
  const stopListening = onAbort([c.req.raw.signal], leave);
  return {
    /** Maximum time from storing the request to its end. */
    timeoutMs,
    /** True if the client sent an Idempotency-Key: a retry then finds the same request. */
    hasKey,
    /** Aborts when the client disconnects. */
    gone,
    /** Call when the client has disconnected. Aborts `gone`; cancels the request unless `hasKey`. */
    leave,
    /** Stops watching once the client has its answer. */
    stop(): void {
      isWatching = false;
      stopListening();
    },
  };
}

async function cancel({ withStore, log }: ApiContext, id: string, owner: string): Promise<void> {
  try {
    const { status } = await withStore((store) => cancelRequest(store, id, { owner }));
    log.info({ request_id: id, status }, 'client disconnected: cancel requested');
  } catch {
    // Redis is unavailable. The request still runs, or expires at its deadline.
    log.warn({ request_id: id }, 'client disconnected: request could not be canceled');
  }
}
