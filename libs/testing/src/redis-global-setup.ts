/**
 * One private redis-server for a whole test run. Tests keep apart by a random key prefix each, so they can run in
 * parallel. `npm test` sees to it that a server is installed.
 */
import type { TestProject } from 'vitest/node';
import { type PrivateRedis, startPrivateRedis } from './private-redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
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
