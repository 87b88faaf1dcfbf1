/**
 * Resolves host names from clients. Does not use `dns.lookup`, which blocks one of libuv's few threads until the name
 * server answers, so that Redis, files and everything else in the process would wait.
 */
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';

export interface ResolveOptions {
  /** Appends the system's search domains to short names; their addresses are usually private. */
  useSearchDomains: boolean;
}

/** Returns all addresses of a name; rejects with the code `ENOTFOUND` or `ETIMEOUT`. */
export type Resolve = (hostname: string, options: ResolveOptions) => Promise<LookupAddress[]>;

export interface HostResolverOptions {
  /** Name servers; the system's by default. */
  servers?: readonly string[];
  /** Timeout for all queries of one name together, ms. */
  timeoutMs?: number;
  hostsPath?: string;
  resolvConfPath?: string;
}

const defaultTimeoutMs = 5000;
/** Timeout of the first query, ms; retries wait longer. */
const queryTimeoutMs = 1500;
const tries = 2;
const loopback: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Creates a resolver that reads the hosts file and queries name servers without libuv's thread pool. */
export function createHostResolver({
  servers,
  timeoutMs = defaultTimeoutMs,
  hostsPath = '/etc/hosts',
  resolvConfPath = '/etc/resolv.conf',
}: HostResolverOptions = {}): Resolve {
  return async (hostname, { useSearchDomains }) => {
    const name = hostname.toLowerCase();
    if (/^(?:.+\.)?localhost\.?$/.test(name)) return [...loopback];
    const known = addressesInHosts(await readText(hostsPath), name.replace(/\.$/, ''));
    if (known.length > 0) return known;
    const names = useSearchDomains ? withSearchDomains(name, await readText(resolvConfPath)) : [name];
    // One resolver per lookup: `cancel` ends all queries of a resolver.
    const resolver = new Resolver({ timeout: queryTimeoutMs, tries });
    if (servers !== undefined) resolver.setServers(servers);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      resolver.cancel();
    }, timeoutMs);
    try {
      for (const candidate of names) {
        const found = await query(resolver, candidate);
        if (Array.isArray(found)) return found;
        isLate ||= found === 'timeout';
        if (isLate) break;
      }
    } finally {
      clearTimeout(timer);
    }
    throw lookupError(isLate ? 'ETIMEOUT' : 'ENOTFOUND');
  };
}

/** Queries both families at once: a name server that drops one type of query must not hide the other. */
async function query(resolver: Resolver, name: string): Promise<LookupAddress[] | 'timeout' | 'none'> {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  const found = [
    ...(v4.status === 'fulfilled' ? v4.value : []).map((address) => ({ address, family: 4 })),
    ...(v6.status === 'fulfilled' ? v6.value : []).map((address) => ({ address, family: 6 })),
  ];
  if (found.length > 0) return found;
  const codes = [v4, v6].map((result) =>
    result.status === 'rejected' ? (result.reason as { code?: string }).code : '',
  );
  return codes.some((code) => code === 'ETIMEOUT' || code === 'ECANCELLED') ? 'timeout' : 'none';
}

function lookupError(code: 'ENOTFOUND' | 'ETIMEOUT'): Error {
  return Object.assign(new Error(`the lookup of a host name failed: ${code}`), { code });
}

function addressesInHosts(text: string, name: string): LookupAddress[] {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, '').toLowerCase().trim().split(/\s+/));
  return lines.flatMap(([address = '', ...names]) =>
    names.includes(name) ? { address, family: address.includes(':') ? 6 : 4 } : [],
  );
}

/** Returns the names to query, in the order of resolv.conf(5). */
function withSearchDomains(name: string, resolvConf: string): string[] {
  if (name.endsWith('.')) return [name];
  const domains = /^\s*(?:search|domain)\s+(?<list>.+)$/m.exec(resolvConf)?.groups?.['list']?.trim().split(/\s+/) ?? [];
  const minDots = Number(/^\s*options\s.*\bndots:(?<count>\d+)/m.exec(resolvConf)?.groups?.['count'] ?? 1);
  const searched = domains.map((domain) => `${name}.${domain.replace(/\.$/, '')}`);
  return name.split('.').length - 1 >= minDots ? [name, ...searched] : [...searched, name];
}

/** Returns an empty text if the file does not exist. */
function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
