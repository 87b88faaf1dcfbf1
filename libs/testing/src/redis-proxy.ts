/** A way to the run's Redis that can fail as networks do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export type RedisProxy = TcpProxy & {
  /** As `REDIS_URL` takes it. */
  url: string;
};

/** Where the run's Redis listens. */
function redisTarget(): { path: string } | { host: string; port: number } {
  const { protocol, pathname, hostname, port } = new URL(inject('redisUrl'));
  return protocol === 'unix:' ? { path: pathname } : { host: hostname, port: Number(port) };
}

/** A socket of the run's Redis. */
export function connectToRedis(): Socket {
  return connect(redisTarget());
}

/** Open until the test is over. */
export async function openRedisProxy(): Promise<RedisProxy> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-proxy-'));
  const path = join(directory, 'proxy.sock');
  const proxy = await startTcpProxy(redisTarget(), { path });
  onTestFinished(() => {
    proxy.stop();
    rmSync(directory, { recursive: true, force: true });
  });
  return Object.assign(proxy, { url: `unix://${path}` });
}
