/** A proxy of the run's Redis with injectable network faults. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export type RedisProxy = TcpProxy & {
  /** Valid as `REDIS_URL`. */
  url: string;
};

/** Returns the address of the run's Redis. */
function redisTarget(): { path: string } | { host: string; port: number } {
  const { protocol, pathname, hostname, port } = new URL(inject('redisUrl'));
  return protocol === 'unix:' ? { path: pathname } : { host: hostname, port: Number(port) };
}

/** Opens a socket to the run's Redis. */
export function connectToRedis(): Socket {
  return connect(redisTarget());
}

/** Starts a proxy that is open until the test ends. */
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
