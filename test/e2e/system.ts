/**
 * The whole system as separate processes, as in production, on the run's private Redis under a prefix of its own. Parts
 * are the built apps (`npm test` builds first), so what is tested here is what `npm start` runs.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectStore, type StoreConnection } from '@darkroom/store';
import { launchPart, type Part, type PartName, removeKeys } from '@darkroom/testing';
import { inject, onTestFinished } from 'vitest';

export type { Part, PartName };

export interface System {
  prefix: string;
  /** Address of the first API. */
  url: string;
  parts: Part[];
  store: StoreConnection;
  /** Where all processes log, as JSON lines. */
  logFile: string;
  start(name: PartName, environment?: Record<string, string>): Promise<Part>;
  /** As `start`, without waiting until it is ready. */
  launch(name: PartName, environment?: Record<string, string>): Part;
  part(name: PartName): Part;
}

export interface StartSystemOptions {
  /** What to start, some with settings of their own. */
  parts?: readonly (PartName | { name: PartName; environment: Record<string, string> })[];
  environment?: Record<string, string>;
  /** Where the test itself looks, when it may do more there than the parts. */
  storeUrl?: string;
}

/** Where no worker dies: none that a busy machine keeps from running for seconds is taken for dead. */
export const patience = { WORKER_TTL_MS: '30000' };

/** Starts the system and stops it when the test (or, in beforeAll, the file) is over; see `stopSystem`. */
export async function startSystem({
  parts: names = ['api', 'batch-former', 'janitor', 'worker'],
  environment = {},
  storeUrl,
}: StartSystemOptions = {}): Promise<System> {
  const prefix = environment['REDIS_PREFIX'] ?? `e2e-${randomUUID()}`;
  const logFile = join(mkdtempSync(join(tmpdir(), 'darkroom-e2e-')), 'log.jsonl');
  const parts: Part[] = [];
  const url = environment['REDIS_URL'] ?? inject('redisUrl');
  const shared = {
    REDIS_URL: url,
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
  const system: System = {
    prefix,
    parts,
    store,
    logFile,
    get url() {
      return system.part('api').url;
    },
    part(name) {
      const found = parts.find((part) => part.name === name && part.process.exitCode === null && !part.process.killed);
      if (found === undefined) throw new Error(`no ${name} is running`);
      return found;
    },
    launch(name, extra = {}) {
      const part = launchPart(name, { ...shared, ...extra }, logFile);
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

/** Ends every process and removes every key. */
export async function stopSystem({ parts, store }: System): Promise<void> {
  await Promise.all(parts.map((part) => part.stop()));
  await removeKeys(store);
  await store.close();
}

/** A system for one test. */
export async function openSystem(options?: StartSystemOptions): Promise<System> {
  const system = await startSystem(options);
  onTestFinished(() => stopSystem(system));
  return system;
}
