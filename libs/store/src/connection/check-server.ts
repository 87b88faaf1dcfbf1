/** Whether what answers at `REDIS_URL` keeps what is stored in it. */
import type { StoreConnection } from './store-connection.ts';

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
    const facts = await server.info().then(readInfo, (error: unknown) => {
      if (!(error instanceof Error) || !error.message.startsWith('NOPERM')) throw error;
      return undefined;
    });
    if (facts === undefined)
      verdict.warnings.push('cannot check the eviction policy of Redis: its user may not use INFO');
    else judge(facts, verdict);
  }
  verdict.warnings = [...new Set(verdict.warnings)];
  return verdict;
}

function judge(facts: ReadonlyMap<string, string>, verdict: ServerVerdict): void {
  const policy = facts.get('maxmemory_policy') ?? 'unknown';
  // Absent where a managed service hides it, and those have a limit.
  const isLimited = facts.get('maxmemory') !== '0';
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
  if (facts.get('aof_enabled') === '0')
    verdict.warnings.push('this Redis has no append-only file: a restart loses the requests since its last snapshot');
}

function readInfo(text: string): Map<string, string> {
  const facts = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':');
    if (colon > 0) facts.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return facts;
}
