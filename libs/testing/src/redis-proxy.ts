/** A way to the run's Redis that can fail as networks do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export type RedisProxy = TcpProxy & {
  /** As `REDIS_URL` takes it. */
  url: string;
};

/** Open until the test is over. */
export async function openRedisProxy(): Promise<RedisProxy> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-proxy-'));
  const path = join(directory, 'proxy.sock');
  const redis = new URL(inject('redisUrl'));
  const target =
    redis.protocol === 'unix:' ? { path: redis.pathname } : { host: redis.hostname, port: Number(redis.port) };
  const proxy = await startTcpProxy(target, { path });
  onTestFinished(() => {
    proxy.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return Object.assign(proxy, { url: `unix://${path}` });
}
