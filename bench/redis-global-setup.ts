/** The Redis of a bench is a process of this machine: one in a container is behind a proxy, and its CPU is nobody's child. */
import { startPrivateRedis } from '../libs/testing/src/private-redis.ts';
import type { TestProject } from 'vitest/node';

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startPrivateRedis();
  project.provide('redisUrl', redis.url);
  return () => redis.stop();
}
