import { isTerminalState, type RequestEvent, type RequestStatus } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField } from '../http/api-error.ts';
import { findRequest } from './find-request.ts';
import { checkMs } from './tail-events.ts';
import { createWakeSignal, onAbort } from './wake-signal.ts';

/** The longest wait over HTTP, seconds: proxies cut silent connections soon after that. */
export const maxWaitS = 60;

/**
 * The request as soon as it has ended, or as it is when the time is over, its client has gone or this process stops. Two
 * round trips and a subscription, one round trip without a wait; while it waits it asks Redis once in `checkMs`, in case
 * the message of the end was lost. `hear`: gets the events that come meanwhile. Throws as `findRequest`.
 */
export async function awaitEnd(
  c: ApiCall,
  { askStore, hub, every, draining }: ApiContext,
  id: string,
  waitMs: number,
  hear: (event: RequestEvent) => void = () => {},
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
  const subscribing = hub.subscribe(id, (event) => {
    hear(event);
    if (isTerminalState(event.type)) wake();
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

/**
 * How long an answer may take, ms, by a Prefer header (RFC 7240); `wait` alone is as long as we do. 0 without one, and for
 * one that is not understood, which the RFC has ignored.
 */
export function preferredWaitMs(header: string | undefined): number {
  for (const preference of (header ?? '').split(',')) {
    const [name = '', value] = preference.split(';')[0]!.split('=');
    if (name.trim().toLowerCase() !== 'wait') continue;
    const seconds = value?.trim().replace(/^"(.*)"$/, '$1') ?? String(maxWaitS);
    return /^\d{1,9}(?:\.\d{1,3})?$/.test(seconds) ? Math.min(maxWaitS, Number(seconds)) * 1000 : 0;
  }
  return 0;
}

/** Seconds from 0 to `maxWaitS`. */
export const queryWait = z.string().regex(/^(?:[0-5]?\d(?:\.\d{1,3})?|60)$/);

/** How long a poll may take, ms, by `?wait=`. */
export function queryWaitMs(text = '0'): number {
  return Number(checkField(queryWait, 'wait', text, `seconds from 0 to ${maxWaitS}`)) * 1000;
}
