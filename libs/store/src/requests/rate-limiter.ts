import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { StoreConnection } from '../connection/store-connection.ts';

export type RateLimiter = ReturnType<typeof createRateLimiter>;

/**
 * Counts one more of a subject, in Redis, so that replicas agree; limits of different names do not touch. The window of a subject
 * begins with its first request after the last one's end. One round trip.
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
  /** `remaining`: left in this window; `resetMs`: until it ends. */
  return async (subject: string): Promise<{ isAllowed: boolean; remaining: number; resetMs: number }> => {
    try {
      const { remainingPoints, msBeforeNext } = await limiter.consume(subject);
      return { isAllowed: true, remaining: remainingPoints, resetMs: msBeforeNext };
    } catch (refusal) {
      // The library rejects with a result when the limit is reached, and with an error when Redis is away.
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      return { isAllowed: false, remaining: 0, resetMs: refusal.msBeforeNext };
    }
  };
}
