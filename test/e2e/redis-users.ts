/**
 * The users of docs/redis-users.acl on the test run's Redis, under the prefix of one system. Each process has only the
 * rights of that file: a test that uses a new key or command without a right in it fails.
 */
import { readFileSync } from 'node:fs';
import type { StoreConnection } from '@darkroom/store';

const file = readFileSync(new URL('../../docs/redis-users.acl', import.meta.url), 'utf8');

export interface RedisUsers {
  /** Returns the URL for a process of this name, or undefined if the file has no user for it. */
  urlOf(name: string): string | undefined;
  /** Lists commands, keys and channels that Redis refused to these users. */
  refusals(): Promise<string[]>;
  remove(): Promise<void>;
}

/** Adds the users. Returns undefined if the server has no TCP port: the URL of a Unix socket cannot name a user. */
export async function addRedisUsers(
  { redis, prefix }: Pick<StoreConnection, 'redis' | 'prefix'>,
  url: string,
): Promise<RedisUsers | undefined> {
  const host = url.startsWith('redis://') ? new URL(url).host : `127.0.0.1:${await portOf(redis)}`;
  if (host.endsWith(':0')) return undefined;
  const users = new Map<string, { name: string; password: string }>();
  for (const line of file.matchAll(/^user (?<name>\S+) on (?<rules>.*)$/gm)) {
    const { name = '', rules = '' } = line.groups ?? {};
    const userName = `${prefix}-${name}`;
    await redis.call('ACL', 'SETUSER', userName, 'reset', 'on', ...rulesFor(prefix, rules));
    users.set(name, { name: userName, password: /(?:^| )>(?<password>\S+)/.exec(rules)?.groups?.['password'] ?? '' });
  }
  const names = [...users.values()].map(({ name }) => name);
  return {
    urlOf(name) {
      const user = users.get(name);
      return user && `redis://${user.name}:${user.password}@${host}`;
    },
    refusals: async () => (await refusalsOf(redis)).filter((refusal) => names.includes(refusal.split(': ')[0]!)),
    remove: async () => void (await redis.call('ACL', 'DELUSER', ...names)),
  };
}

/** Returns the ACL log, newest first, each entry as `<user>: <reason> <object>`. */
export async function refusalsOf(redis: StoreConnection['redis']): Promise<string[]> {
  const entries = (await redis.call('ACL', 'LOG', '1000')) as (string | number)[][];
  return entries.map((fields) => {
    const valueOf = (name: string): string => String(fields[fields.indexOf(name) + 1]);
    return `${valueOf('username')}: ${valueOf('reason')} ${valueOf('object')}`;
  });
}

async function portOf(redis: StoreConnection['redis']): Promise<number> {
  const [, port = 0] = (await redis.call('CONFIG', 'GET', 'port')) as string[];
  return Number(port);
}

/** Adapts the rules to the prefix, and to any model name: tests have models that the file does not list. */
function rulesFor(prefix: string, rules: string): string[] {
  const all = rules.replaceAll('darkroom:', `${prefix}:`).replaceAll(/\{emoji-[^ ]*/g, '{[a-z0-9]*');
  return [...new Set(all.split(' '))];
}
