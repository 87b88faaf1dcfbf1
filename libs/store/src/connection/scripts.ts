/**
 * Lua scripts, one per atomic state transition, each next to its wrapper. ioredis sends EVALSHA and falls back to EVAL
 * when Redis has lost a script (restart, failover, SCRIPT FLUSH).
 */
import { readFileSync } from 'node:fs';
import type { RedisClient } from './open-redis.ts';

const scriptPaths = [
  'requests/admit-request',
  'requests/cancel-request',
  'dead/drop-request',
  'requests/expire-requests',
  'requests/list-requests',
  'requests/pin-request',
  'requests/read-position',
  'requests/idempotency-key',
  'dispatch/dispatch-requests',
  'dispatch/read-dispatchable',
  'events/read-events',
  'files/store-file',
  'keys/add-key',
  'keys/remove-key',
  'events/write-batch',
  'workers/drain-worker',
  'models/forget-model',
  'workers/heartbeat-worker',
  'workers/register-worker',
  'models/restart-lock',
  'workers/resume-worker',
  'workers/send-command',
  'workers/sweep-workers',
  'workers/unregister-worker',
  'upkeep/sweep-key',
] as const;
type ScriptPath = (typeof scriptPaths)[number];
export type ScriptArgument = string | number | Uint8Array;

// Lua is not compiled: both the sources and the build in dist/ read it from src/.
const directory = new URL('../../src/', import.meta.url);
const includePattern = /^--- @include "(?<name>[a-z-]+)"\n/gm;

/** Returns the text of a script with its includes inlined, each once. */
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

/** Runs a script on the slot of `base` (see modelKeys) and returns its reply, as text or as Buffers. */
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
