/**
 * One private redis-server for a whole test run, on a Unix socket in a temporary directory. Tests keep apart by a
 * random key prefix each, so they can run in parallel. `npm test` sees to it that a server is installed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

export interface PrivateRedis {
  /** `unix:///…/redis.sock`, as `REDIS_URL` takes it. */
  url: string;
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a redis-server of its own and resolves once it accepts connections. */
export async function startPrivateRedis(extraArguments: readonly string[] = []): Promise<PrivateRedis> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-redis-'));
  const socket = join(directory, 'redis.sock');
  const server = spawn(
    'redis-server',
    ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', directory, ...extraArguments],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  for await (const line of createInterface({ input: server.stdout })) if (/ready to accept/i.test(line)) break;
  server.stdout.resume();
  return {
    url: `unix://${socket}`,
    process: server,
    async stop() {
      if (server.exitCode === null && server.signalCode === null) {
        server.kill('SIGTERM');
        await once(server, 'exit');
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

// Vitest runs this once per project; all of them share the first one's server.
let shared: { redis: Promise<PrivateRedis>; users: number } | undefined;

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared ??= { redis: startPrivateRedis(), users: 0 };
  const current = shared;
  current.users++;
  const redis = await current.redis;
  project.provide('redisUrl', redis.url);
  return async () => {
    if (--current.users === 0) await redis.stop();
  };
}
