/** A world: the keys of one model in Redis, which can be copied and read as a whole, each in one round trip. */
import type { StoreConnection } from '@darkroom/store';

export const requestIds = ['ra', 'rb'];
export const workerIds = ['wa', 'wb'];
/** Owners of the two requests. */
export const owners = ['oa', 'ob'];

type Kind = 'hash' | 'zset' | 'string' | 'stream';

const ofRequests: [string, Kind][] = [
  ['request:$', 'hash'],
  ['input:$', 'string'],
  ['promptless:$', 'string'],
  ['events:$', 'stream'],
  ['previews:$', 'hash'],
  ['output:$:0', 'hash'],
  ['checkpoint:$:0', 'string'],
];
const ofOwners: [string, Kind][] = [
  ['queued:$', 'zset'],
  ['bytes:$', 'hash'],
  ['listed:$', 'zset'],
  ['expiring:$', 'zset'],
];
const ofWorkers: [string, Kind][] = [
  ['worker:$', 'hash'],
  ['inbox:$', 'stream'],
  ['leases:$', 'hash'],
  ['drained:$', 'string'],
];
const ofModel: [string, Kind][] = [
  ...['front', 'places', 'waiting', 'deadlines', 'workers:heard'].map((name): [string, Kind] => [name, 'zset']),
  ...['loading', 'idle', 'busy', 'asleep', 'draining'].map((list): [string, Kind] => [`workers:${list}`, 'zset']),
  ...['shares', 'open', 'swept', 'capacity', 'counters'].map((name): [string, Kind] => [name, 'hash']),
  ...['arrivals', 'reserved', 'paused'].map((name): [string, Kind] => [name, 'string']),
  ...['dead', 'webhooks'].map((name): [string, Kind] => [name, 'stream']),
];
const named = (kinds: [string, Kind][], names: readonly string[]): [string, Kind][] =>
  kinds.flatMap(([name, kind]) => names.map((each): [string, Kind] => [name.replace('$', each), kind]));

/** All keys that scripts may leave, except the counters per minute, which differ between worlds. */
export const keyKinds: [string, Kind][] = [
  ...ofModel,
  ...named(ofRequests, requestIds),
  ...named(ofOwners, owners),
  ...named(ofWorkers, workerIds),
];

const luaList = keyKinds.map(([name, kind]) => `{'${name}','${kind}'}`).join(',');

/** KEYS: 1 base to copy, 2 base of the copy. */
const copyLua = `
for _, each in ipairs({${luaList}}) do
  redis.call('COPY', KEYS[1] .. ':' .. each[1], KEYS[2] .. ':' .. each[1])
end`;

/** KEYS: 1 base   ARGV: 1 '1' to delete the keys, too. Returns: JSON {name: [TTL ms, content], …} */
const readLua = `
local read = {
  hash = function(key) return redis.call('HGETALL', key) end,
  zset = function(key) return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  string = function(key) return redis.call('GET', key) end,
  stream = function(key) return redis.call('XRANGE', key, '-', '+') end,
}
local found = {}
for _, each in ipairs({${luaList}}) do
  local key = KEYS[1] .. ':' .. each[1]
  local ttlMs = redis.call('PTTL', key)
  if ttlMs ~= -2 then
    found[each[1]] = { ttlMs, read[each[2]](key) }
    if ARGV[1] == '1' then redis.call('DEL', key) end
  end
end
return cjson.encode(found)`;

const deleteLua = `for _, each in ipairs({${luaList}}) do redis.call('DEL', KEYS[1] .. ':' .. each[1]) end`;

/** All keys below a world's base: by name the TTL in ms (-1 for none) and the content as Redis returns it. */
export type Snapshot = Record<string, [ttlMs: number, content: unknown]>;

export interface Worlds {
  copy(from: string, to: string): Promise<unknown>;
  read(base: string, options?: { isLast?: boolean }): Promise<Snapshot>;
  delete(base: string): Promise<unknown>;
}

export function openWorlds({ redis }: StoreConnection): Worlds {
  redis.defineCommand('copyWorld', { numberOfKeys: 2, lua: copyLua });
  redis.defineCommand('readWorld', { numberOfKeys: 1, lua: readLua });
  redis.defineCommand('deleteWorld', { numberOfKeys: 1, lua: deleteLua });
  const commands = redis as unknown as Record<string, (...values: string[]) => Promise<unknown>>;
  return {
    copy: (from, to) => commands['copyWorld']!(from, to),
    async read(base, { isLast = false } = {}) {
      return JSON.parse((await commands['readWorld']!(base, isLast ? '1' : '0')) as string) as Snapshot;
    },
    delete: (base) => commands['deleteWorld']!(base),
  };
}

/** Returns the fields of a hash, or the members of a sorted set with their scores. */
export function pairsOf(snapshot: Snapshot, name: string): Record<string, string> {
  const content = (snapshot[name]?.[1] ?? []) as string[];
  const pairs: Record<string, string> = {};
  for (let index = 0; index + 1 < content.length; index += 2) pairs[content[index]!] = content[index + 1]!;
  return pairs;
}

/** Returns the entries of a stream: the id, and the value of one field. */
export function entriesOf(snapshot: Snapshot, name: string, field: string): [id: string, value: string][] {
  const content = snapshot[name]?.[1] as [string, string[]][] | undefined;
  if (!Array.isArray(content)) return [];
  return content.map(([id, fields]) => [id, fields[fields.indexOf(field) + 1]!]);
}

/** Returns the type of an event or a message. */
export function typeOf(body: string): string {
  return /"type":"(?<type>[a-z_]+)"/.exec(body)?.groups?.['type'] ?? body;
}
