export interface RedisHost {
  host: string;
  port: number;
}

interface RedisAccess {
  hosts: readonly RedisHost[];
  isTls: boolean;
  /** ACL user; without one the password is that of the default user. */
  username?: string;
  password?: string;
}

/**
 * Location of Redis, parsed from `REDIS_URL`. `single`: one server, or a proxy; the client parses the rest of the URL
 * itself.
 */
export type RedisAddress =
  | { kind: 'single'; url: string }
  | { kind: 'socket'; path: string }
  | (RedisAccess & { kind: 'cluster' })
  /** `hosts` are Sentinels, `master` is the name of the monitored server. User and password are those of the server. */
  | (RedisAccess & { kind: 'sentinel'; master: string });

const manyPattern =
  /^(?<scheme>rediss?)-(?<kind>cluster|sentinel):\/\/(?:(?<user>[^@/]*)@)?(?<hosts>[^@/?#]+)(?:\/(?<path>[^/?#]*))?$/;
const hostPattern = /^(?<host>\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+)(?::(?<port>\d{1,5}))?$/i;
const defaultPorts = { cluster: 6379, sentinel: 26_379 } as const;

/** Parses a Redis URL; undefined if it is invalid. */
export function parseRedisUrl(text: string): RedisAddress | undefined {
  if (/^unix:\/\/\/./.test(text)) return { kind: 'socket', path: text.slice('unix://'.length) };
  // A comma means a list of hosts, which `redis://` does not support.
  if (/^rediss?:\/\/./.test(text))
    return URL.canParse(text) && !new URL(text).host.includes(',') ? { kind: 'single', url: text } : undefined;
  const groups = manyPattern.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const kind = groups['kind'] as keyof typeof defaultPorts;
  const hosts = groups['hosts']!.split(',').map((host) => parseHost(host, defaultPorts[kind]));
  const credentials = parseCredentials(groups['user']);
  const master = groups['path'] ?? '';
  if (credentials === undefined || !hosts.every((host) => host !== undefined)) return undefined;
  const access = { hosts, isTls: groups['scheme'] === 'rediss', ...credentials };
  if (kind === 'cluster') return master === '' ? { kind, ...access } : undefined;
  return master === '' ? undefined : { kind, ...access, master };
}

function parseHost(text: string, defaultPort: number): RedisHost | undefined {
  const groups = hostPattern.exec(text.trim())?.groups;
  if (groups === undefined) return undefined;
  const port = groups['port'] === undefined ? defaultPort : Number(groups['port']);
  if (port < 1 || port > 65_535) return undefined;
  return { host: groups['host']!.replaceAll(/[[\]]/g, ''), port };
}

function parseCredentials(text = ''): { username?: string; password?: string } | undefined {
  try {
    const [username = '', ...rest] = text.split(':').map((part) => decodeURIComponent(part));
    const password = rest.join(':');
    return { ...(username && { username }), ...(password && { password }) };
  } catch {
    // Incomplete percent escape.
    return undefined;
  }
}
