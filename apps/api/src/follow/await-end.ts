import { isTerminalState, type RequestStatus } from '@darkroom/core';
import { findRequest } from './find-request.ts';
import { checkMs, type FollowDeps } from './tail-events.ts';
import { createWakeSignal } from './wake-signal.ts';

/** The longest wait over HTTP, seconds: proxies cut silent connections soon after that. */
export const maxWaitS = 60;

export interface AwaitEndOptions {
  owner: string;
  waitMs: number;
  /** The client has gone. */
  signal: AbortSignal;
}

/**
 * The request as soon as it has ended, or as it is when the time is over. Two round trips and a subscription; while it
 * waits it asks Redis once in `checkMs`, in case the message of the end was lost. Throws as `findRequest`.
 */
export async function awaitEnd(
  deps: FollowDeps,
  id: string,
  { owner, waitMs, signal }: AwaitEndOptions,
): Promise<RequestStatus> {
  const waiting = startWaiting(deps, { waitMs, signal });
  // Subscribed before the first look, so that an end between the two is not missed.
  const subscribing = deps.hub.subscribe(id, ({ type }) => {
    if (isTerminalState(type)) waiting.wake();
  });
  try {
    await deps.askStore(() => subscribing);
    let request = await findRequest(deps.askStore, id, owner);
    while (!isTerminalState(request.state) && !waiting.isOver()) {
      await waiting.woken();
      request = await findRequest(deps.askStore, id, owner);
    }
    return request;
  } finally {
    waiting.stop();
    subscribing.then((leave) => leave()).catch(() => {});
  }
}

/** Everything that ends a sleep: a message, the slow check, the time, a client that has gone, this process stopping. */
function startWaiting(
  { every, draining, hub }: FollowDeps,
  { waitMs, signal }: { waitMs: number; signal: AbortSignal },
) {
  let isOver = draining.aborted || signal.aborted;
  const { wake, woken } = createWakeSignal();
  const end = (): void => {
    isOver = true;
    wake();
  };
  const stops = [every(waitMs, end), every(checkMs, wake), hub.onReconnect(wake)];
  for (const ending of [draining, signal]) {
    ending.addEventListener('abort', end);
    stops.push(() => ending.removeEventListener('abort', end));
  }
  return {
    wake,
    isOver: () => isOver,
    woken,
    stop: () => stops.forEach((stop) => stop()),
  };
}
