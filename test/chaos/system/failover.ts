/** Redis as several servers, of which a replica takes the master's place: behind Sentinel, or as a Cluster. */
import { setTimeout as delay } from 'node:timers/promises';
import { ask, type RedisServer, startRedisBehindSentinel, startRedisCluster } from '@darkroom/testing/processes';
import type { ChaosRedis } from './redis.ts';

/** Longer than a busy machine keeps a server from answering: nobody asked for that failover. */
const silentMs = 4000;
const lookMs = 200;
const longestMs = 60_000;

interface Servers {
  url: string;
  /** Of a key. */
  master: (key: string) => Promise<{ port: number; server: RedisServer }>;
  auth: readonly string[];
  stop(): Promise<void>;
}

const starts = {
  async sentinel(): Promise<Servers> {
    const { password, ...servers } = await startRedisBehindSentinel({ downAfterMs: silentMs });
    return { ...servers, auth: ['--no-auth-warning', '-a', password] };
  },
  async cluster(): Promise<Servers> {
    const cluster = await startRedisCluster({ nodeTimeoutMs: silentMs });
    return { ...cluster, master: (key) => cluster.masterOf(key), auth: [] };
  },
};

export type Failover = keyof typeof starts;

/** `keys`: the masters of these are ended, in turn. */
export async function startFailover(kind: Failover, keys: readonly string[]): Promise<ChaosRedis> {
  const servers = await starts[kind]();
  const { master, auth } = servers;
  let restarts = 0;
  return {
    url: servers.url,
    port: undefined,
    hasDisk: false,
    get restarts() {
      return restarts;
    },
    async end(signal, downMs) {
      const key = keys[restarts % keys.length]!;
      const { port, server } = await master(key);
      server.process.kill(signal);
      // It has no file: back before another is master, it would be an empty one.
      await untilTrue(async () => (await master(key)).port !== port);
      await delay(downMs);
      await server.restart();
      restarts += 1;
      await untilTrue(async () => /master_link_status:up/.test(await ask(port, [...auth, 'info', 'replication'])));
    },
    fill: () => Promise.reject(new Error('it has no disk of its own')),
    stop: () => servers.stop(),
    abandon: () => void servers.stop(),
  };
}

async function untilTrue(isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + longestMs;
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > deadlineMs) throw new Error('nobody took the place of the master');
    await delay(lookMs);
  }
}
