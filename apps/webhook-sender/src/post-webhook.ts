/** One POST to a receiver that nobody here trusts. */
import type { IncomingMessage } from 'node:http';
import { guardedRequest, type GuardedRequestOptions } from '@darkroom/service';

export type PostWebhookOptions = Omit<GuardedRequestOptions, 'method' | 'body'> & { body: string };

/** `refused`: the address is not public, and nothing was sent. `failed`: no answer came; the reason shows nothing of ours. */
export type PostResult =
  | { status: 'answered'; code: number }
  | { status: 'refused' }
  | { status: 'failed'; reason: string };

/** What is read of an answer's body; its receiver has no more to say to us. */
const maxBodyBytes = 65_536;

/** Redirects are answers: none is followed. */
export async function postWebhook(options: PostWebhookOptions): Promise<PostResult> {
  const result = await guardedRequest({ ...options, method: 'POST' }, drain);
  return result.status === 'answered' ? { status: 'answered', code: result.code } : result;
}

/** Reads the body so that the receiver can end in order, but not for ever. The status has been given: a broken body changes nothing. */
async function drain(response: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response) {
      size += (chunk as Buffer).byteLength;
      if (size > maxBodyBytes) return;
    }
  } catch {
    // The receiver broke off, or the time was over.
  }
}
