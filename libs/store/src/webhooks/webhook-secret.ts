import { randomBytes } from 'node:crypto';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Standard Webhooks asks for 24 to 64. */
const secretBytes = 32;

/** The secret that an owner's webhooks are signed with, `whsec_…`; made on first need, the same for all replicas. */
export async function readWebhookSecret({ redis, prefix }: StoreConnection, owner: string): Promise<string> {
  const key = systemKeys(prefix).webhookSecrets;
  const known = await redis.hget(key, owner);
  if (known !== null) return known;
  await redis.hsetnx(key, owner, `whsec_${randomBytes(secretBytes).toString('base64')}`);
  return (await redis.hget(key, owner)) ?? '';
}
