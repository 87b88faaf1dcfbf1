/**
 * The whole system as separate processes on the test run's private Redis, under its own key prefix.
 * It runs the built apps (`npm test` builds first), as `npm start` does.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectStore, type StoreConnection } from '@darkroom/store';
import { type LaunchOptions, launchPart, type Part, type PartName, removeKeys } from '@darkroom/testing';
import { inject, onTestFinished } from 'vitest';
import { addRedisUsers, type RedisUsers } from './redis-users.ts';

export type { Part, PartName };

export interface System {
  prefix: string;
  /** Address of the first API. */
  url: string;
  parts: Part[];
  store: StoreConnection;
  /** Redis ACL users of the processes; undefined on another Redis than the test run's. */
  users: RedisUsers | undefined;
  /** File with the JSON log lines of all processes. */
  logFile: string;
  start(name: PartName, environment?: Record<string, string>): Promise<Part>;
  /** Like `start`, without waiting until it is ready. */
  launch(name: PartName, environment?: Record<string, string>, options?: LaunchOptions): Part;
  part(name: PartName): Part;
}

export interface StartSystemOptions {
  /** Processes to start, some with settings of their own. */
  parts?: readonly (PartName | { name: PartName; environment: Record<string, string> })[];
  environment?: Record<string, string>;
  /** URL of the test's own store connection, if it has more rights than the processes. */
  storeUrl?: string;
  /** The test run's Redis, for callers that cannot inject it. */
  redisUrl?: string;
}

/** For tests in which no worker dies: a worker that a busy machine stalls for seconds is not reaped. */
export const longWorkerTtl = { WORKER_TTL_MS: '30000' };

/** Starts the system. The caller stops it with `stopSystem`. */
export async function startSystem({
  parts: names = ['api', 'batch-former', 'janitor', 'worker'],
  environment = {},
  storeUrl,
  redisUrl,
}: StartSystemOptions = {}): Promise<System> {
  const prefix = environment['REDIS_PREFIX'] ?? `e2e-${randomUUID()}`;
  const logFile = join(mkdtempSync(join(tmpdir(), 'darkroom-e2e-')), 'log.jsonl');
  const parts: Part[] = [];
  const customUrl = environment['REDIS_URL'];
  const url = customUrl ?? redisUrl ?? inject('redisUrl');
  const shared = {
    REDIS_PREFIX: prefix,
    LOG_LEVEL: 'info',
    PORT: '0',
    METRICS_PORT: '0',
    ...environment,
  };
  const store = connectStore({
    url: storeUrl ?? url,
    prefix,
    sentinelPassword: environment['REDIS_SENTINEL_PASSWORD'],
  });
  const users = customUrl === undefined ? await addRedisUsers(store, url) : undefined;
  const system: System = {
    prefix,
    parts,
    store,
    users,
    logFile,
    get url() {
      return system.part('api').url;
    },
    part(name) {
      const found = parts.find((part) => part.name === name && part.process.exitCode === null && !part.process.killed);
      if (found === undefined) throw new Error(`no ${name} is running`);
      return found;
    },
    launch(name, extra = {}, options = {}) {
      const part = launchPart(name, { ...shared, REDIS_URL: users?.urlOf(name) ?? url, ...extra }, logFile, options);
      parts.push(part);
      return part;
    },
    async start(name, extra) {
      const part = system.launch(name, extra);
      await part.ready;
      return part;
    },
  };
  try {
    const wanted = names.map((part) => (typeof part === 'string' ? { name: part, environment: {} } : part));
    await Promise.all(wanted.map((part) => system.start(part.name, part.environment)));
  } catch (error) {
    await stopSystem(system);
    throw error;
  }
  return system;
}

/** Stops every process and deletes every key. Throws if docs/redis-users.acl refused a command of a process. */
export async function stopSystem({ parts, store, users }: System): Promise<void> {
  await Promise.all(parts.map((part) => part.stop()));
  const refusals = (await users?.refusals()) ?? [];
  await users?.remove();
  await removeKeys(store);
  await store.close();
  if (refusals.length > 0) throw new Error(`docs/redis-users.acl gives no right to: ${refusals.join('; ')}`);
}

/** Starts a system for one test. */
export async function openSystem(options?: StartSystemOptions): Promise<System> {
  const system = await startSystem(options);
  onTestFinished(() => stopSystem(system));
  return system;
}
