import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface RateLimiterOptions {
  /** What is counted, as part of a key: limits of different names do not touch. */
  name: string;
  limit: number;
  windowS: number;
}

export interface RateCount {
  isAllowed: boolean;
  /** Left in this window. */
  remaining: number;
  /** Until the window ends, ms. */
  resetMs: number;
}

/** Counts in Redis, so that replicas agree. The window of a subject begins with its first request after the last one's end. */
export interface RateLimiter {
  /** One more of this subject. One round trip. */
  count(subject: string): Promise<RateCount>;
}

export function createRateLimiter(store: StoreConnection, { name, limit, windowS }: RateLimiterOptions): RateLimiter {
  const limiter = new RateLimiterRedis({
    storeClient: store.redis,
    keyPrefix: `${store.prefix}:rate:${name}`,
    points: limit,
    duration: windowS,
  });
  return {
    async count(subject) {
      try {
        const { remainingPoints, msBeforeNext } = await limiter.consume(subject);
        return { isAllowed: true, remaining: remainingPoints, resetMs: msBeforeNext };
      } catch (refusal) {
        // The library rejects with a result when the limit is reached, and with an error when Redis is away.
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
        return { isAllowed: false, remaining: 0, resetMs: refusal.msBeforeNext };
      }
    },
  };
}
