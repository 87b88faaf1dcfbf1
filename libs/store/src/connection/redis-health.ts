/** Whether Redis answers, what it says of itself, and whether it keeps what is stored in it. */
import { setTimeout as delay } from 'node:timers/promises';
import type { StoreConnection } from './store-connection.ts';

/** Whether Redis answers within this time. Never rejects, and leaves nothing behind on a connection that is down. */
export async function isStoreReachable({ redis }: StoreConnection, withinMs = 1000): Promise<boolean> {
  if (redis.status !== 'ready') return false;
  const answer = redis.ping().then(
    () => true,
    () => false,
  );
  return Promise.race([answer, delay(withinMs, false, { ref: false })]);
}

/** Bytes of memory that Redis says it has used, and that it may use at most: 0 for no limit. On a cluster, of one node. */
export async function readRedisMemory({ redis }: StoreConnection): Promise<{ used: number; max: number }> {
  const info = await redis.info('memory');
  return { used: Number(fieldOf(info, 'used_memory') ?? 0), max: Number(fieldOf(info, 'maxmemory') ?? 0) };
}

export interface ServerVerdict {
  /** Why no job may be trusted to it, in words for an operator. */
  refusal: string | undefined;
  /** What an operator should know and may have decided. */
  warnings: string[];
}

/** Asks every server that holds keys; waits for them as long as it takes. */
export async function checkServer(store: StoreConnection): Promise<ServerVerdict> {
  // A Cluster's masters are known once it has answered.
  await store.redis.ping();
  const verdict: ServerVerdict = { refusal: undefined, warnings: [] };
  for (const server of store.masters()) {
    try {
      judge(await server.info(), verdict);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOPERM')) throw error;
      verdict.warnings.push('cannot check the eviction policy of Redis: its user may not use INFO');
    }
  }
  verdict.warnings = [...new Set(verdict.warnings)];
  return verdict;
}

function judge(info: string, verdict: ServerVerdict): void {
  const policy = fieldOf(info, 'maxmemory_policy') ?? 'unknown';
  // Absent where a managed service hides it, and those have a limit.
  const isLimited = fieldOf(info, 'maxmemory') !== '0';
  if (policy === 'unknown') verdict.warnings.push('this Redis does not say what its eviction policy is');
  else if (policy !== 'noeviction' && isLimited)
    verdict.refusal =
      `maxmemory-policy of this Redis is ${policy}: when its memory is full it would throw away waiting requests, ` +
      'locks and results without a word. Set it to noeviction (CONFIG SET maxmemory-policy noeviction, or the ' +
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
