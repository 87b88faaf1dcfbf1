import type { StoreConnection } from './store-connection.ts';

/** Whether Redis answers within this time. Never rejects, and leaves nothing behind on a connection that is down. */
export async function isStoreReachable({ redis }: StoreConnection, withinMs = 1000): Promise<boolean> {
  if (redis.status !== 'ready') return false;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), withinMs);
  });
  const answer = redis.ping().then(
    () => true,
    () => false,
  );
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

export interface RedisMemory {
  usedBytes: number;
  /** 0 when it has no limit. */
  maxBytes: number;
}

/** What Redis says of its memory. On a cluster, of one node. */
export async function readRedisMemory({ redis }: StoreConnection): Promise<RedisMemory> {
  const text = await redis.info('memory');
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { usedBytes: field('used_memory'), maxBytes: field('maxmemory') };
}
