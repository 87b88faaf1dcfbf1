/**
 * The Lua scripts, one per atomic transition, beside their wrappers. ioredis sends EVALSHA and falls back to EVAL by itself
 * when Redis has forgotten a script (restart, failover, SCRIPT FLUSH).
 */
import { readFileSync } from 'node:fs';
import type { RedisClient } from './open-redis.ts';

const scriptPaths = [
  'requests/admit-request',
  'requests/cancel-request',
  'requests/drop-request',
  'requests/expire-requests',
  'requests/read-position',
  'requests/idempotency-key',
  'dispatch/dispatch-requests',
  'dispatch/read-dispatchable',
  'events/read-events',
  'events/write-batch',
  'workers/drain-worker',
  'workers/heartbeat-worker',
  'workers/register-worker',
  'workers/reload-turn',
  'workers/sweep-workers',
  'upkeep/sweep-key',
] as const;
type ScriptPath = (typeof scriptPaths)[number];
export type ScriptArgument = string | number | Uint8Array;

// Lua is not compiled, so it is read from the sources, by these and by what is built of them.
const directory = new URL('../../src/', import.meta.url);
const includePattern = /^--- @include "(?<name>[a-z-]+)"\n/gm;

/** The text of a script with its includes in place, each once. */
function scriptText(path: ScriptPath): string {
  const included = new Set<string>();
  const read = (file: string): string =>
    readFileSync(new URL(`${file}.lua`, directory), 'utf8').replaceAll(includePattern, (_line, name: string) => {
      if (included.has(name)) return '';
      included.add(name);
      return read(`includes/${name}`);
    });
  return read('includes/prelude') + read(path);
}

export function defineScripts(redis: RedisClient): void {
  for (const path of scriptPaths) redis.defineCommand(path, { numberOfKeys: 1, lua: scriptText(path) });
}

/** Runs a script on the slot of `base` (see modelKeys) and returns its reply as ioredis decodes it: text, or bytes. */
export function runScript(
  { redis }: { redis: RedisClient },
  path: ScriptPath,
  { base }: { base: string },
  scriptArguments: readonly ScriptArgument[],
  { asBytes = false }: { asBytes?: boolean } = {},
): Promise<unknown> {
  const commands = redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const values = scriptArguments.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value,
  );
  return commands[asBytes ? `${path}Buffer` : path]!(base, ...values);
}
