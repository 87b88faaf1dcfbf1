import { readIdempotencyKey } from '@darkroom/store';
import { allowanceHeaders, rateLimitExceeded } from '../auth/limit-rate.ts';
import type { ApiContext } from '../context/context.ts';
import type { ApiCall } from '../http/api-env.ts';

/**
 * Counts a submission before its body is read, for bodies that are expensive to read. With a known Idempotency-Key the
 * request may be stored already; only the body tells, so it is counted later. Throws 429 past the rate limit.
 */
export async function countEarly(c: ApiCall, context: ApiContext): Promise<void> {
  const { name: owner, requestsPerMinute } = c.get('apiKey');
  if (requestsPerMinute === undefined) return;
  const key = c.req.header('idempotency-key');
  const isKnown =
    key !== undefined && (await context.withStore((store) => readIdempotencyKey(store, { owner, key }))) !== undefined;
  if (isKnown) return;
  await countSubmitted(c, context);
  c.set('isCounted', true);
}

/** Counts a submission unless `countEarly` did. Throws 429 past the key's rate limit. */
export async function countSubmitted(c: ApiCall, { countSubmission }: ApiContext): Promise<void> {
  const { name: owner, requestsPerMinute } = c.get('apiKey');
  if (requestsPerMinute === undefined || c.get('isCounted') === true) return;
  const allowance = await countSubmission(owner, requestsPerMinute);
  for (const [name, value] of Object.entries(allowanceHeaders(allowance))) c.header(name, value);
  if (!allowance.isAllowed) throw rateLimitExceeded(allowance);
}
