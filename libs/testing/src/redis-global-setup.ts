/**
 * One Redis for a whole test run. Tests use random key prefixes, so they can run in parallel. `npm test` makes sure
 * that there is one.
 */
import type { TestProject } from 'vitest/node';
import { startTestRedis, type TestRedis } from './test-redis.ts';

declare module 'vitest' {
  interface ProvidedContext {
    redisUrl: string;
  }
}

// Vitest runs this once per project; all projects share the first one's server.
let shared: { redis: Promise<TestRedis>; users: number } | undefined;

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shared ??= { redis: startTestRedis(), users: 0 };
  const current = shared;
  current.users++;
  const redis = await current.redis;
  project.provide('redisUrl', redis.url);
  return async () => {
    if (--current.users === 0) await redis.stop();
  };
}
