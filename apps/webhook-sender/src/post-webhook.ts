/** One POST to an untrusted receiver. */
import type { IncomingMessage } from 'node:http';
import { guardedRequest, type GuardedRequestOptions } from '@darkroom/service';

export type PostWebhookOptions = Omit<GuardedRequestOptions, 'method' | 'body'> & { body: string };

/**
 * `refused`: the address is not public; nothing was sent. `failed`: no answer; the reason contains no internal details.
 */
export type PostResult =
  | { status: 'answered'; code: number }
  | { status: 'refused' }
  | { status: 'failed'; reason: string };

/** Max. bytes read of an answer's body, which is ignored. */
const maxBodyBytes = 65_536;

/** Sends a webhook. Redirects are answers and are not followed. */
export async function postWebhook(options: PostWebhookOptions): Promise<PostResult> {
  const result = await guardedRequest({ ...options, method: 'POST' }, drain);
  return result.status === 'answered' ? { status: 'answered', code: result.code } : result;
}

/**
 * Reads the body, up to a limit, so that the receiver can end cleanly. Errors are ignored: the status is known already.
 */
async function drain(response: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response) {
      size += (chunk as Buffer).byteLength;
      if (size > maxBodyBytes) return;
    }
  } catch {
    // The receiver disconnected, or the timeout expired.
  }
}
