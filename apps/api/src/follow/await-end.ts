import { isTerminalState, type RequestStatus } from '@darkroom/core';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { findRequest } from './find-request.ts';
import { checkMs } from './tail-events.ts';
import { createWakeSignal, onAbort } from './wake-signal.ts';

/** The longest wait over HTTP, seconds: proxies cut silent connections soon after that. */
export const maxWaitS = 60;

/**
 * The request as soon as it has ended, or as it is when the time is over, its client has gone or this process stops. Two
 * round trips and a subscription, one round trip without a wait; while it waits it asks Redis once in `checkMs`, in case
 * the message of the end was lost. Throws as `findRequest`.
 */
export async function awaitEnd(
  c: ApiCall,
  { askStore, hub, every, draining }: ApiContext,
  id: string,
  waitMs: number,
): Promise<RequestStatus> {
  const find = (): Promise<RequestStatus> => findRequest(askStore, id, c.get('owner'));
  if (waitMs === 0) return find();
  const { wake, woken } = createWakeSignal();
  const over = new AbortController();
  const end = (): void => {
    over.abort();
    wake();
  };
  // Subscribed before the first look, so that an end between the two is not missed.
  const subscribing = hub.subscribe(id, ({ type }) => {
    if (isTerminalState(type)) wake();
  });
  const stops = [onAbort([draining, c.req.raw.signal], end), every(waitMs, end), every(checkMs, wake)];
  stops.push(hub.onReconnect(wake), () => void subscribing.then((leave) => leave()).catch(() => {}));
  try {
    await askStore(() => subscribing);
    let request = await find();
    while (!isTerminalState(request.state) && !over.signal.aborted) {
      await woken();
      request = await find();
    }
    return request;
  } finally {
    for (const stop of stops) stop();
  }
}
