/**
 * The Lua scripts of ../scripts, one per atomic transition, registered on a connection. ioredis sends EVALSHA and falls
 * back to EVAL by itself when Redis has forgotten a script (restart, failover, SCRIPT FLUSH).
 */
import { readFileSync } from 'node:fs';
import type { RedisClient } from './open-redis.ts';

export const scriptNames = [
  'admit-request',
  'append-progress',
  'bury-workers',
  'cancel-request',
  'choose-next',
  'claim-idempotency-key',
  'drain-worker',
  'drop-orphan',
  'drop-request',
  'expire-request',
  'finish-request',
  'heartbeat-worker',
  'lease-batch',
  'read-load-failures',
  'read-paces',
  'read-pool',
  'read-request',
  'read-stats',
  'read-workers',
  'register-worker',
  'release-rows',
  'report-load-failure',
  'requeue-request',
  'resume-worker',
  'retry-request',
  'settle-idempotency-key',
  'unregister-worker',
  'write-checkpoint',
  'write-output',
] as const;
export type ScriptName = (typeof scriptNames)[number];
export type ScriptArgument = string | number | Uint8Array;

const directory = new URL('../scripts/', import.meta.url);
const includePattern = /^--- @include "(?<name>[a-z-]+)"$/gm;

/** The text of a script with its includes in place. */
export function scriptText(name: ScriptName): string {
  return readFile(`${name}.lua`);
}

function readFile(path: string): string {
  const text = readFileSync(new URL(path, directory), 'utf8');
  return text.replaceAll(includePattern, (_line, include: string) => readFile(`includes/${include}.lua`));
}

export function defineScripts(redis: RedisClient): void {
  for (const name of scriptNames) redis.defineCommand(name, { numberOfKeys: 1, lua: scriptText(name) });
}

/** Runs a script on the slot of `base` (see ModelKeys) and returns its reply as ioredis decodes it. */
export function runScript(
  redis: RedisClient,
  name: ScriptName,
  base: string,
  ...scriptArguments: ScriptArgument[]
): Promise<unknown> {
  const command = (redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>)[name];
  if (command === undefined) throw new Error(`script ${name} is not defined on this connection`);
  const values = scriptArguments.map((value) =>
    value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : value,
  );
  return command.call(redis, base, ...values);
}
