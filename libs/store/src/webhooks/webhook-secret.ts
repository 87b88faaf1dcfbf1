import { randomBytes } from 'node:crypto';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Standard Webhooks requires 24 to 64. */
const secretBytes = 32;

/** Returns the secret that signs an owner's webhooks, `whsec_…`; created on first use, the same in all replicas. */
export async function readWebhookSecret({ redis, prefix }: StoreConnection, owner: string): Promise<string> {
  const key = systemKeys(prefix).webhookSecrets;
  const known = await redis.hget(key, owner);
  if (known !== null) return known;
  await redis.hsetnx(key, owner, `whsec_${randomBytes(secretBytes).toString('base64')}`);
  return (await redis.hget(key, owner)) ?? '';
}
