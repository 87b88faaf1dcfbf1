import { randomBytes } from 'node:crypto';
import { idSecretKey } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** What request ids are authenticated with (`createRequestId`): made on first need, the same for all replicas. */
export async function readIdSecret({ redis, prefix }: StoreConnection): Promise<string> {
  const key = idSecretKey(prefix);
  const made = randomBytes(32).toString('base64');
  return ((await redis.set(key, made, 'NX', 'GET' as never)) as string | null) ?? made;
}
