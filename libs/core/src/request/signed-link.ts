/** Paths that are open to whoever holds them, until a time that they say: `…?expires=<seconds>&signature=<code>`. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a link says besides its path, as it stands in the query. */
export interface LinkParts {
  /** Seconds since the epoch. */
  expires: string | undefined;
  /** Of path and `expires`: HMAC-SHA256 in base64url. */
  signature: string | undefined;
}

/**
 * A link to what is at `path`, which has no query yet. The same arguments give the same link.
 *
 * @param secret known to ourselves only.
 * @param untilMs milliseconds since the epoch; rounded up to whole seconds.
 */
export function signLink(path: string, { secret, untilMs }: { secret: string; untilMs: number }): string {
  const expires = String(Math.ceil(untilMs / 1000));
  return `${path}?expires=${expires}&signature=${codeOf(path, expires, secret).toString('base64url')}`;
}

/** Whether a link is one of ours, and of this path. How long the answer takes tells nothing of the right code. */
export function checkLink(
  path: string,
  { expires, signature }: LinkParts,
  { secret, nowMs }: { secret: string; nowMs: number },
): 'valid' | 'expired' | 'wrong' {
  const expected = codeOf(path, expires ?? '', secret);
  const given = Buffer.from(signature ?? '', 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'wrong';
  return Number(expires) * 1000 > nowMs ? 'valid' : 'expired';
}

function codeOf(path: string, expires: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(`${path}\n${expires}`).digest();
}
