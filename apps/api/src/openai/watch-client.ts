import type { Logger } from '@darkroom/service';
import { cancelRequest } from '@darkroom/store';
import type { AskStore } from '../server/store-guard.ts';

/** Whether the client is still there to take its pictures. */
export interface ClientWatch {
  /** Aborted when it has gone. */
  readonly gone: AbortSignal;
  /** It has gone. */
  leave(): void;
  /** It has its answer: what happens from here on is no going away. */
  stop(): void;
}

export interface WatchClientDeps {
  askStore: AskStore;
  log: Logger;
  draining: AbortSignal;
}

export interface WatchClientOptions {
  id: string;
  owner: string;
  /** Of the HTTP request: aborted when its connection breaks. */
  signal: AbortSignal;
  /** It has an Idempotency-Key and may come back for the same request, so that is not canceled. */
  hasKey: boolean;
}

/** Cancels the request at once when its client goes away before it has its answer. */
export function watchClient(deps: WatchClientDeps, { id, owner, signal, hasKey }: WatchClientOptions): ClientWatch {
  const gone = new AbortController();
  let isWatching = true;
  const stop = (): void => {
    isWatching = false;
    signal.removeEventListener('abort', leave);
  };
  const leave = (): void => {
    if (!isWatching) return;
    stop();
    gone.abort();
    // A process that stops closes connections itself, which says nothing about what the client wants.
    if (!hasKey && !deps.draining.aborted) void cancel(deps, id, owner);
  };
  // It may have gone while the request was stored.
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave);
  return { gone: gone.signal, leave, stop };
}

async function cancel({ askStore, log }: WatchClientDeps, id: string, owner: string): Promise<void> {
  try {
    const { status } = await askStore((store) => cancelRequest(store, id, { owner }));
    log.info({ request_id: id, status }, 'the client went away');
  } catch {
    // Redis is away: it is drawn for nobody, or ends at its deadline.
    log.warn({ request_id: id }, 'could not cancel a request whose client went away');
  }
}
