import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { StoreConnection } from '../connection/store-connection.ts';

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Creates a fixed-window rate limiter with counters in Redis, shared by all replicas; limiters of different names are
 * independent. The window of a subject begins with its first request. One round trip per call.
 */
export function createRateLimiter(
  store: StoreConnection,
  { name, limit, windowS }: { name: string; limit: number; windowS: number },
) {
  const limiter = new RateLimiterRedis({
    storeClient: store.redis,
    keyPrefix: `${store.prefix}:rate:${name}`,
    points: limit,
    duration: windowS,
  });
  /** `remaining`: requests left in this window; `resetMs`: until it ends. */
  return async (subject: string): Promise<{ isAllowed: boolean; remaining: number; resetMs: number }> => {
    try {
      const { remainingPoints, msBeforeNext } = await limiter.consume(subject);
      return { isAllowed: true, remaining: remainingPoints, resetMs: msBeforeNext };
    } catch (refusal) {
      // consume() rejects with a RateLimiterRes at the limit, and with an error if Redis is unavailable.
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return { isAllowed: false, remaining: 0, resetMs: refusal.msBeforeNext };
    }
  };
}
