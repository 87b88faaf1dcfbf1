import { type Clock, within } from '@darkroom/core';
import { readWebhookSecret, type SendOutcome, type StoreConnection, type WebhookMessage } from '@darkroom/store';
import { Webhook } from 'standardwebhooks';
import type { createDeliveryPlaces } from './delivery-places.ts';
import { type PostResult, postWebhook } from './post-webhook.ts';

export interface DeliverWebhookOptions {
  store: StoreConnection;
  allowPrivate: boolean;
  takePlace: ReturnType<typeof createDeliveryPlaces>;
  clock: Clock;
  /** Aborts when the process is to end: what is under way then is sent again by another one. */
  stopping: AbortSignal;
}

const attemptTimeoutMs = 15_000;
/** How soon a delivery that found no place asks for one again. */
const noPlaceMs = 2000;

/** One attempt at a delivery: signed anew, because the signature covers the time of the attempt. */
export async function deliverWebhook(
  { store, allowPrivate, takePlace, clock, stopping }: DeliverWebhookOptions,
  { id, owner, url, payload }: WebhookMessage,
): Promise<SendOutcome> {
  const giveBack = takePlace({ owner, url });
  if (giveBack === undefined) return { status: 'postponed', delayMs: noPlaceMs };
  try {
    const headers = signedHeaders(id, payload, await readWebhookSecret(store, owner), new Date(clock.now()));
    const result = await within(attemptTimeoutMs, stopping, (signal) =>
      postWebhook({ url, headers, body: payload, signal, allowPrivate }),
    );
    if (stopping.aborted && result.status === 'failed') return { status: 'postponed', delayMs: 0 };
    return outcomeOf(result);
  } finally {
    giveBack();
  }
}

function signedHeaders(id: string, payload: string, secret: string, timestamp: Date): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(payload)),
    'User-Agent': 'Darkroom-Webhooks/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(timestamp.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, timestamp, payload),
  };
}

function outcomeOf(result: PostResult): SendOutcome {
  if (result.status === 'failed') return { ...result, isFinal: false };
  if (result.status === 'refused') return { status: 'failed', reason: 'the address is not public', isFinal: true };
  const { code } = result;
  if (code >= 200 && code < 300) return { status: 'delivered' };
  const isRedirect = code >= 300 && code < 400;
  const reason = `HTTP ${code}${isRedirect ? ': redirects are not followed' : ''}`;
  // 410 Gone: the receiver says that it wants no more of this.
  return { status: 'failed', reason, isFinal: code === 410 };
}
