import { readIdempotencyKey } from '@darkroom/store';
import { allowanceHeaders, rateLimitExceeded } from '../auth/limit-rate.ts';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { findStoredId, type Keyed } from './idempotency.ts';

/**
 * Counts a body that costs to read, before it is read. One whose Idempotency-Key came before may be stored already, which only the
 * body can say: it is counted afterwards. Throws 429 for a key that has sent too much.
 */
export async function countEarly(c: ApiCall, context: ApiContext): Promise<void> {
  const { name: owner, requestsPerMinute } = c.get('apiKey');
  if (requestsPerMinute === undefined) return;
  const key = c.req.header('idempotency-key');
  const isKnown =
    key !== undefined && (await context.askStore((store) => readIdempotencyKey(store, { owner, key }))) !== undefined;
  if (isKnown) return;
  await countSubmitted(c, context, undefined);
  c.set('isCounted', true);
}

/** Counts a submission, unless that was done early. Throws 429 for a key that has sent too much; what is stored already is sent again for nothing. */
export async function countSubmitted(
  c: ApiCall,
  { askStore, countSubmission }: ApiContext,
  keyed: Keyed | undefined,
): Promise<void> {
  const { name: owner, requestsPerMinute } = c.get('apiKey');
  if (requestsPerMinute === undefined || c.get('isCounted') === true) return;
  if (keyed !== undefined && (await findStoredId(askStore, { ...keyed, owner })) !== undefined) return;
  const allowance = await countSubmission(owner, requestsPerMinute);
  for (const [name, value] of Object.entries(allowanceHeaders(allowance))) c.header(name, value);
  if (!allowance.isAllowed) throw rateLimitExceeded(allowance);
}
