import type { StoreConnection } from './store-connection.ts';

/** Returns the time of Redis, ms since the epoch, because the clocks of machines differ. One round trip. */
export async function readTime({ redis }: Pick<StoreConnection, 'redis'>): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
