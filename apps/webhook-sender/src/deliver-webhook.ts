import { type Clock, withTimeLimit } from '@darkroom/core';
import { readWebhookSecret, type SendOutcome, type StoreConnection, type WebhookMessage } from '@darkroom/store';
import { Webhook } from 'standardwebhooks';
import type { createConnectionSlots } from './connection-slots.ts';
import { type PostResult, postWebhook } from './post-webhook.ts';

export interface DeliverWebhookOptions {
  store: StoreConnection;
  allowPrivate: boolean;
  acquireSlot: ReturnType<typeof createConnectionSlots>;
  clock: Clock;
  /** Aborted when the process ends: deliveries in progress are then postponed and sent by another process. */
  stopping: AbortSignal;
}

const attemptTimeoutMs = 15_000;
/** Delay before a delivery without a free connection slot is tried again. */
const noSlotDelayMs = 2000;

/** Attempts one delivery. Signs every attempt, because the signature covers the time of the attempt. */
export async function deliverWebhook(
  { store, allowPrivate, acquireSlot, clock, stopping }: DeliverWebhookOptions,
  { id, owner, url, payload }: WebhookMessage,
): Promise<SendOutcome> {
  const release = acquireSlot({ owner, url });
  if (release === undefined) return { status: 'postponed', delayMs: noSlotDelayMs };
  try {
    const headers = signedHeaders(id, payload, await readWebhookSecret(store, owner), new Date(clock.now()));
    const result = await withTimeLimit(attemptTimeoutMs, stopping, (signal) =>
      postWebhook({ url, headers, body: payload, signal, allowPrivate }),
    );
    if (stopping.aborted && result.status === 'failed') return { status: 'postponed', delayMs: 0 };
    return outcomeOf(result);
  } finally {
    release();
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
  // 410 Gone: the receiver wants no more deliveries.
  return { status: 'failed', reason, isFinal: code === 410 };
}
