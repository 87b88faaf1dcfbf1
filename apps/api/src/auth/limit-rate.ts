import { createRateLimiter, type RateLimiter, type StoreConnection } from '@darkroom/store';
import { ApiError } from '../http/api-error.ts';
import type { ApiMetrics } from '../http/api-metrics.ts';
import type { AskStore } from '../server/store-guard.ts';
import type { ApiKey } from './api-keys.ts';

/** What a key may still send. */
export interface Allowance {
  /** Whether what was just counted is within the limit. */
  isAllowed: boolean;
  perMinute: number;
  remaining: number;
  /** Seconds until all of it is back. */
  resetS: number;
}

/** Counts a submission against its key's limit; undefined for a key without one. */
export type CountSubmission = (key: ApiKey) => Promise<Allowance | undefined>;

const windowS = 60;

export function createSubmissionCounter(
  store: StoreConnection,
  askStore: AskStore,
  { rateLimited }: Pick<ApiMetrics, 'rateLimited'>,
): CountSubmission {
  // One for each limit that keys have; the subject is the key's name.
  const limiters = new Map<number, RateLimiter>();
  const limiterOf = (limit: number): RateLimiter => {
    let limiter = limiters.get(limit);
    if (limiter === undefined) {
      limiter = createRateLimiter(store, { name: 'submit', limit, windowS });
      limiters.set(limit, limiter);
    }
    return limiter;
  };
  return async ({ name, requestsPerMinute: perMinute }) => {
    if (perMinute === undefined) return undefined;
    const { isAllowed, remaining, resetMs } = await askStore(() => limiterOf(perMinute)(name));
    if (!isAllowed) rateLimited.inc();
    return { isAllowed, perMinute, remaining, resetS: Math.ceil(resetMs / 1000) };
  };
}

/** https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06 */
export function allowanceHeaders({ perMinute, remaining, resetS }: Allowance): Record<string, string> {
  return {
    'RateLimit-Limit': String(perMinute),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': String(resetS),
    'RateLimit-Policy': `${perMinute};w=${windowS}`,
  };
}

export function rateLimitExceeded({ perMinute, resetS }: Allowance): ApiError {
  const message = `This key may send ${perMinute} requests a minute; the next one in ${resetS} s.`;
  return new ApiError({
    status: 429,
    code: 'rate_limit_exceeded',
    message,
    headers: { 'Retry-After': String(resetS) },
  });
}
