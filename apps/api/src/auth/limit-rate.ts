import { createRateLimiter, type RateLimiter, type StoreConnection } from '@darkroom/store';
import type { Context } from 'hono';
import type { ApiEnv } from '../context.ts';
import { ApiError } from '../http/api-error.ts';
import type { ApiMetrics } from '../http/api-metrics.ts';
import type { AskStore } from '../server/store-guard.ts';

/** Counts a submission against its key's limit, says in headers how much is left, and throws 429 when nothing is. */
export type LimitRate = (c: Context<ApiEnv>) => Promise<void>;

const windowS = 60;

export function createRateLimit(store: StoreConnection, askStore: AskStore, { rateLimited }: ApiMetrics): LimitRate {
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
  return async (c) => {
    const { name, requestsPerMinute } = c.get('apiKey');
    if (requestsPerMinute === undefined) return;
    const limiter = limiterOf(requestsPerMinute);
    const { isAllowed, remaining, resetMs } = await askStore(() => limiter.count(name));
    const resetS = String(Math.ceil(resetMs / 1000));
    // https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-06
    c.header('RateLimit-Limit', String(requestsPerMinute));
    c.header('RateLimit-Remaining', String(remaining));
    c.header('RateLimit-Reset', resetS);
    c.header('RateLimit-Policy', `${requestsPerMinute};w=${windowS}`);
    if (isAllowed) return;
    rateLimited.inc();
    const message = `This key may send ${requestsPerMinute} requests a minute; the next one in ${resetS} s.`;
    throw new ApiError({ status: 429, code: 'rate_limit_exceeded', message, headers: { 'Retry-After': resetS } });
  };
}
