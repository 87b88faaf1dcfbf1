/** Redis as several servers, of which a replica takes the master's place: behind Sentinel, or as a Cluster. */
import { setTimeout as delay } from 'node:timers/promises';
import { ask, type RedisServer, startRedisBehindSentinel, startRedisCluster } from '@darkroom/testing/processes';
import type { ChaosRedis } from './redis.ts';

/** Longer than a busy machine keeps a server from answering: nobody asked for that failover. */
const silentMs = 4000;
const lookMs = 200;
/** So far behind a master that is killed is its replica: what it was told in that time is lost. */
const lagMs = 500;
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
      // One that is told to end waits for its replicas.
      if (signal === 'SIGTERM') server.process.kill(signal);
      else await killAhead(server, await replicaPids(port, auth), () => ask(port, [...auth, ...cutReplicas]));
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

const cutReplicas = ['client', 'kill', 'type', 'replica'];

/** Processes of the servers that follow the one on this port. */
async function replicaPids(port: number, auth: readonly string[]): Promise<number[]> {
  const followers = (await ask(port, [...auth, 'info', 'replication'])).matchAll(/^slave\d+:.*port=(?<port>\d+)/gm);
  return Promise.all(
    [...followers].map(async ({ groups }) => {
      const server = await ask(Number(groups!['port']), [...auth, 'info', 'server']);
      return Number(/process_id:(?<pid>\d+)/.exec(server)!.groups!['pid']);
    }),
  );
}

/** Kills a master that has gone on without its replicas for a while. */
async function killAhead(master: RedisServer, replicas: readonly number[], cut: () => Promise<unknown>): Promise<void> {
  for (const pid of replicas) process.kill(pid, 'SIGSTOP');
  try {
    // What is on its way to one that stands still would come when it goes on.
    await cut();
    await delay(lagMs);
    master.process.kill('SIGKILL');
  } finally {
    for (const pid of replicas) process.kill(pid, 'SIGCONT');
  }
}

async function untilTrue(isSo: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + longestMs;
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > deadlineMs) throw new Error('nobody took the place of the master');
    await delay(lookMs);
  }
}
