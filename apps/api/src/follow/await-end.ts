import { isTerminalState, type StoredEvent, type RequestSnapshot, WakeSignal } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { checkField } from '../http/api-error.ts';
import { findRequest } from './find-request.ts';
import { checkMs, onAbort } from './tail-events.ts';

/** Maximum wait over HTTP, seconds: proxies cut silent connections soon after that. */
export const maxWaitS = 60;

/**
 * Resolves with the request when it ends; or with its current state on timeout, disconnect or server stop. Reads it
 * once per `checkMs`, in case the pub/sub message of the end is lost. `onEvent` gets the events until then. Throws like
 * `findRequest`.
 */
export async function awaitEnd(
  c: ApiCall,
  { withStore, hub, every, draining }: ApiContext,
  id: string,
  waitMs: number,
  onEvent: (event: StoredEvent) => void = () => {},
): Promise<RequestSnapshot> {
  const find = (): Promise<RequestSnapshot> => findRequest(withStore, id, c.get('owner'));
  if (waitMs === 0) return find();
  const changed = new WakeSignal();
  const wake = (): void => changed.wake();
  const over = new AbortController();
  const end = (): void => {
    over.abort();
    wake();
  };
  // Subscribe before the first read, so that an end between the two is not missed.
  const subscribing = hub.subscribe(id, (event) => {
    onEvent(event);
    if (isTerminalState(event.type)) wake();
  });
  const stops = [onAbort([draining, c.req.raw.signal], end), every(waitMs, end), every(checkMs, wake)];
  stops.push(hub.onReconnect(wake), () => void subscribing.then((leave) => leave()).catch(() => {}));
  try {
    await withStore(() => subscribing);
    let request = await find();
    while (!isTerminalState(request.state) && !over.signal.aborted) {
      await changed.wait();
      request = await find();
    }
    return request;
  } finally {
    for (const stop of stops) stop();
  }
}

/**
 * Returns the wait of a Prefer header (RFC 7240), ms; the maximum for `wait` without a value. 0 without the header, and
 * for unknown preferences, which the RFC says to ignore.
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

/** Returns the wait of `?wait=`, ms. Throws 400 if it is invalid. */
export function queryWaitMs(text = '0'): number {
  return Number(checkField(queryWait, 'wait', text, `seconds from 0 to ${maxWaitS}`)) * 1000;
}
