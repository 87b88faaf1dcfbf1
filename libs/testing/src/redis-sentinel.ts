/** A separate master with two replicas and three Sentinels. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runRedisCli } from './redis-cluster.ts';
import { freePorts, type RedisServer, startRedisServer } from './redis-server.ts';

const replicas = 2;
const sentinels = 3;
const name = 'images';

export interface RedisBehindSentinel {
  /** `redis-sentinel://…`, valid as `REDIS_URL`. */
  url: string;
  /** Password of the servers. */
  password: string;
  /** Returns the current master according to the Sentinels. */
  master(): Promise<{ port: number; server: RedisServer }>;
  stop(): Promise<void>;
}

export interface StartSentinelOptions {
  program?: string;
  /** Time after which an unresponsive master is failed over, ms. */
  downAfterMs?: number;
  /** Password of the master and its replicas. */
  password?: string;
  sentinelPassword?: string;
}

/** Starts the servers; resolves once every Sentinel knows the others and both replicas. */
export async function startRedisBehindSentinel({
  program = 'redis-server',
  downAfterMs = 1000,
  password = 'password',
  sentinelPassword,
}: StartSentinelOptions = {}): Promise<RedisBehindSentinel> {
  const ports = await freePorts(1 + replicas + sentinels);
  const serverPorts = ports.slice(0, 1 + replicas);
  const sentinelPorts = ports.slice(1 + replicas);
  const servers = new Map<number, RedisServer>();
  const stop = async (): Promise<void> =>
    void (await Promise.all([...servers.values()].map((server) => server.stop())));
  const sentinelAuth = sentinelPassword === undefined ? [] : ['--no-auth-warning', '-a', sentinelPassword];
  try {
    const [first] = serverPorts;
    for (const port of serverPorts) {
      const own = ['--port', `${port}`, '--bind', '127.0.0.1', '--repl-diskless-sync-delay', '0'];
      const auth = ['--requirepass', password, '--masterauth', password];
      const follow = port === first ? [] : ['--replicaof', `127.0.0.1 ${first}`];
      servers.set(port, await startRedisServer({ program, args: () => [...own, ...auth, ...follow] }));
    }
    for (const port of sentinelPorts) {
      const settings = sentinelSettings({ port, master: first!, downAfterMs, password, sentinelPassword });
      servers.set(port, await startSentinel(program, settings));
    }
    for (const port of sentinelPorts) await untilComplete(port, sentinelAuth);
    return {
      url: `redis-sentinel://:${encodeURIComponent(password)}@${sentinelPorts.map((port) => `127.0.0.1:${port}`).join(',')}/${name}`,
      password,
      async master() {
        const reply = await runRedisCli(sentinelPorts[0], [
          ...sentinelAuth,
          'sentinel',
          'get-master-addr-by-name',
          name,
        ]);
        const port = Number(reply.split('\n')[1]);
        return { port, server: servers.get(port)! };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startSentinel(program: string, settings: readonly string[]): Promise<RedisServer> {
  return startRedisServer({
    program,
    args(directory) {
      const file = join(directory, 'sentinel.conf');
      writeFileSync(file, `dir ${directory}\n${settings.join('\n')}\n`);
      return [file, '--sentinel'];
    },
    isReady: /Sentinel ID is/,
  });
}

interface SentinelSettings {
  port: number;
  master: number;
  downAfterMs: number;
  password: string;
  sentinelPassword: string | undefined;
}

function sentinelSettings({ port, master, downAfterMs, password, sentinelPassword }: SentinelSettings): string[] {
  return [
    `port ${port}`,
    'bind 127.0.0.1',
    `sentinel monitor ${name} 127.0.0.1 ${master} 2`,
    `sentinel down-after-milliseconds ${name} ${downAfterMs}`,
    `sentinel failover-timeout ${name} 5000`,
    `sentinel auth-pass ${name} ${password}`,
    ...(sentinelPassword === undefined ? [] : [`requirepass ${sentinelPassword}`]),
  ];
}

async function untilComplete(port: number, auth: readonly string[]): Promise<void> {
  for (;;) {
    const fields = (await runRedisCli(port, [...auth, 'sentinel', 'master', name])).split('\n');
    const valueOf = (field: string): string | undefined => fields[fields.indexOf(field) + 1];
    if (valueOf('num-slaves') === String(replicas) && valueOf('num-other-sentinels') === String(sentinels - 1)) return;
  }
}
