/** Redis with failover: replicas behind Sentinel, or a Cluster. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  runRedisCli,
  type RedisServer,
  startRedisBehindSentinel,
  startRedisCluster,
} from '@darkroom/testing/processes';
import type { ChaosRedis } from './redis.ts';

/** Failover timeout: long enough that a server on a busy machine is not failed over by accident. */
const failoverTimeoutMs = 4000;
const pollMs = 200;
/** Replication lag of the replicas when a master is killed; writes of that time are lost. */
const lagMs = 500;
const timeoutMs = 60_000;

interface Servers {
  url: string;
  /** Returns the master of a key. */
  master: (key: string) => Promise<{ port: number; server: RedisServer }>;
  auth: readonly string[];
  stop(): Promise<void>;
}

const starts = {
  async sentinel(): Promise<Servers> {
    const { password, ...servers } = await startRedisBehindSentinel({ downAfterMs: failoverTimeoutMs });
    return { ...servers, auth: ['--no-auth-warning', '-a', password] };
  },
  async cluster(): Promise<Servers> {
    const cluster = await startRedisCluster({ nodeTimeoutMs: failoverTimeoutMs });
    return { ...cluster, master: (key) => cluster.masterOf(key), auth: [] };
  },
};

export type Failover = keyof typeof starts;

/** Starts the servers. `keys`: each fault ends the master of the next of these keys. */
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
      // On SIGTERM a master waits for its replicas, so no write is lost.
      if (signal === 'SIGTERM') server.process.kill(signal);
      else await killAhead(server, await replicaPids(port, auth), () => runRedisCli(port, [...auth, ...cutReplicas]));
      // The server has no persistence: if restarted before the failover, it would be an empty master.
      await untilTrue(async () => (await master(key)).port !== port);
      await delay(downMs);
      await server.restart();
      restarts += 1;
      await untilTrue(async () =>
        /master_link_status:up/.test(await runRedisCli(port, [...auth, 'info', 'replication'])),
      );
    },
    fill: () => Promise.reject(new Error('Redis with failover has no separate disk')),
    stop: () => servers.stop(),
    killNow: () => void servers.stop(),
  };
}

const cutReplicas = ['client', 'kill', 'type', 'replica'];

/** Returns the pids of the replicas of the server on this port. */
async function replicaPids(port: number, auth: readonly string[]): Promise<number[]> {
  const followers = (await runRedisCli(port, [...auth, 'info', 'replication'])).matchAll(
    /^slave\d+:.*port=(?<port>\d+)/gm,
  );
  return Promise.all(
    [...followers].map(async ({ groups }) => {
      const server = await runRedisCli(Number(groups!['port']), [...auth, 'info', 'server']);
      return Number(/process_id:(?<pid>\d+)/.exec(server)!.groups!['pid']);
    }),
  );
}

/** Freezes the replicas, lets the master run ahead of them for `lagMs`, and kills it. */
async function killAhead(master: RedisServer, replicas: readonly number[], cut: () => Promise<unknown>): Promise<void> {
  for (const pid of replicas) process.kill(pid, 'SIGSTOP');
  try {
    // Close the replication links: frozen replicas would read buffered writes when they continue.
    await cut();
    await delay(lagMs);
    master.process.kill('SIGKILL');
  } finally {
    for (const pid of replicas) process.kill(pid, 'SIGCONT');
  }
}

async function untilTrue(condition: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + timeoutMs;
  while (!(await condition().catch(() => false))) {
    if (Date.now() > deadlineMs) throw new Error(`the failover did not complete within ${timeoutMs} ms`);
    await delay(pollMs);
  }
}
