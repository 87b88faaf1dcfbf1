/** Health of Redis: reachability, memory, eviction policy and persistence. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreConnection } from './store-connection.ts';

/** Returns whether Redis replies within `withinMs`. Never rejects, and queues no command on a broken connection. */
export async function isStoreReachable({ redis }: StoreConnection, withinMs = 1000): Promise<boolean> {
  if (redis.status !== 'ready') return false;
  const answer = redis.ping().then(
    () => true,
    () => false,
  );
  return Promise.race([answer, delay(withinMs, false, { ref: false })]);
}

/** Reads used and maximum memory in bytes (0: no limit). On a Cluster: of one node. */
export async function readRedisMemory({ redis }: StoreConnection): Promise<{ used: number; max: number }> {
  const info = await redis.info('memory');
  return { used: Number(fieldOf(info, 'used_memory') ?? 0), max: Number(fieldOf(info, 'maxmemory') ?? 0) };
}

export interface ServerCheck {
  /** Why Redis must not be used, for operators. */
  refusal: string | undefined;
  /** Settings that may be intended, for operators. */
  warnings: string[];
}

/** Checks the settings of every server that holds keys; waits until they are reachable. */
export async function checkServer(store: StoreConnection): Promise<ServerCheck> {
  // The masters of a Cluster are known after its first reply.
  await store.redis.ping();
  const verdict: ServerCheck = { refusal: undefined, warnings: [] };
  for (const server of store.masters()) {
    try {
      checkSettings(await server.info(), verdict);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOPERM')) throw error;
      verdict.warnings.push('cannot check the eviction policy of Redis: the user lacks the INFO command');
    }
  }
  verdict.warnings = [...new Set(verdict.warnings)];
  return verdict;
}

function checkSettings(info: string, verdict: ServerCheck): void {
  const policy = fieldOf(info, 'maxmemory_policy') ?? 'unknown';
  // Managed services may hide the limit, and they always have one.
  const isLimited = fieldOf(info, 'maxmemory') !== '0';
  if (policy === 'unknown') verdict.warnings.push('this Redis does not report its eviction policy (maxmemory_policy)');
  else if (policy !== 'noeviction' && isLimited)
    verdict.refusal =
      `maxmemory-policy of this Redis is ${policy}, expected noeviction: when its memory is full it would evict ` +
      'waiting requests, locks and results. Set it to noeviction (CONFIG SET maxmemory-policy noeviction, or the ' +
      'parameter of that name at a managed service); a full Redis then refuses new requests, and clients get a 503';
  else if (policy !== 'noeviction')
    verdict.warnings.push(
      `maxmemory-policy of this Redis is ${policy}: set it to noeviction before you limit its memory`,
    );
  if (fieldOf(info, 'aof_enabled') === '0')
    verdict.warnings.push('this Redis has no append-only file: a restart loses the requests since its last snapshot');
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:([^\\r\\n]*)`, 'm').exec(info)?.[1];
}
