/** Starts the benches' Redis as a child process, because the CPU time of one in a container cannot be read. */
import { startPrivateRedis } from '../libs/testing/src/private-redis.ts';
import type { TestProject } from 'vitest/node';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startPrivateRedis();
  project.provide('redisUrl', redis.url);
  return () => redis.stop();
}
