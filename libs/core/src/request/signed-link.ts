/** Signed links: paths that need no API key until they expire: `…?expires=<seconds>&signature=<code>`. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Query parameters of a signed link. */
export interface LinkParts {
  /** Seconds since the epoch. */
  expires: string | undefined;
  /** HMAC-SHA256 of path and `expires`, in base64url. */
  signature: string | undefined;
}

/**
 * Signs a path without a query. The same arguments give the same link.
 *
 * @param secret server secret.
 * @param untilMs expiry, ms since the epoch; rounded up to whole seconds.
 */
export function signLink(path: string, { secret, untilMs }: { secret: string; untilMs: number }): string {
  const expires = String(Math.ceil(untilMs / 1000));
  return `${path}?expires=${expires}&signature=${codeOf(path, expires, secret).toString('base64url')}`;
}

/** Checks a signed link for a path, in constant time. */
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
