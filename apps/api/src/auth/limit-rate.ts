import { createRateLimiter, type RateLimiter, type StoreConnection } from '@darkroom/store';
import { ApiError } from '../http/api-error.ts';
import type { ApiMetrics } from '../http/api-metrics.ts';
import type { WithStore } from '../server/store-guard.ts';

/** Remaining rate limit of a key. */
export type Allowance = Awaited<ReturnType<RateLimiter>> & { perMinute: number };

const windowS = 60;

export function createSubmissionCounter(
  store: StoreConnection,
  withStore: WithStore,
  { rateLimited }: Pick<ApiMetrics, 'rateLimited'>,
): (keyName: string, perMinute: number) => Promise<Allowance> {
  // One limiter per distinct limit.
  const limiters = new Map<number, RateLimiter>();
  return async (keyName, perMinute) => {
    const limiter = limiters.get(perMinute) ?? createRateLimiter(store, { name: 'submit', limit: perMinute, windowS });
    limiters.set(perMinute, limiter);
    const counted = await withStore(() => limiter(keyName));
    if (!counted.isAllowed) rateLimited.inc();
    return { ...counted, perMinute };
  };
}

function secondsOf(ms: number): string {
  return String(Math.ceil(ms / 1000));
}

/**
 * Returns the RateLimit headers. Source: https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06
 */
export function allowanceHeaders({ perMinute, remaining, resetMs }: Allowance): Record<string, string> {
  return {
    'RateLimit-Limit': String(perMinute),
    'RateLimit-Remaining': String(remaining),
    'RateLimit-Reset': secondsOf(resetMs),
    'RateLimit-Policy': `${perMinute};w=${windowS}`,
  };
}

export function rateLimitExceeded({ perMinute, resetMs }: Pick<Allowance, 'perMinute' | 'resetMs'>): ApiError {
  const resetS = secondsOf(resetMs);
  const message = `This key may send ${perMinute} requests a minute; the next one in ${resetS} s.`;
  return new ApiError(429, 'rate_limit_exceeded', message, { headers: { 'Retry-After': resetS } });
}
