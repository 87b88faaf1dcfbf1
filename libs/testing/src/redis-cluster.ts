/** A separate Redis Cluster: three masters by default, with one replica each. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { freePorts, type RedisServer, startRedisServer } from './redis-server.ts';

const run = promisify(execFile);

export interface RedisCluster {
  /** `redis-cluster://…`, valid as `REDIS_URL`. */
  url: string;
  /** Returns the current master of a key and its port. */
  masterOf(key: string): Promise<{ port: number; server: RedisServer }>;
  /** Changes the time after which an unresponsive master is failed over, ms. */
  setNodeTimeout(nodeTimeoutMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface StartRedisClusterOptions {
  program?: string;
  /** Time after which an unresponsive master is failed over, ms. */
  nodeTimeoutMs?: number;
  masters?: number;
}

/** Starts a Cluster; resolves once every slot has a master and every master its replica. */
export async function startRedisCluster({
  program = 'redis-server',
  nodeTimeoutMs = 1000,
  masters = 3,
}: StartRedisClusterOptions = {}): Promise<RedisCluster> {
  const ports = await freePorts(masters * 4);
  const servers = new Map<number, RedisServer>();
  const stop = async (): Promise<void> =>
    void (await Promise.all([...servers.values()].map((server) => server.stop())));
  try {
    for (let node = 0; node < masters * 2; node++) {
      const [port, busPort] = [ports[2 * node]!, ports[2 * node + 1]!];
      servers.set(
        port,
        await startRedisServer({ program, args: () => nodeArguments({ port, busPort, nodeTimeoutMs }) }),
      );
    }
    const addresses = [...servers.keys()].map((port) => `127.0.0.1:${port}`);
    await runRedisCli(undefined, ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes']);
    await untilEachKnowsAll([...servers.keys()], masters);
    return {
      url: `redis-cluster://${addresses.slice(0, masters).join(',')}`,
      async masterOf(key) {
        const port = await masterPort([...servers.keys()], key);
        return { port, server: servers.get(port)! };
      },
      async setNodeTimeout(timeoutMs) {
        const words = ['config', 'set', 'cluster-node-timeout', `${timeoutMs}`];
        await Promise.all([...servers.keys()].map((port) => runRedisCli(port, words)));
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function nodeArguments(node: { port: number; busPort: number; nodeTimeoutMs: number }): string[] {
  const own = ['--port', `${node.port}`, '--cluster-port', `${node.busPort}`, '--bind', '127.0.0.1'];
  const cluster = ['--cluster-enabled', 'yes', '--cluster-node-timeout', `${node.nodeTimeoutMs}`];
  return [...own, ...cluster, '--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'];
}

/** Runs one command with redis-cli, independent of the client under test. */
export async function runRedisCli(port: number | undefined, words: readonly string[]): Promise<string> {
  const { stdout } = await run('redis-cli', [...(port === undefined ? [] : ['-p', `${port}`]), ...words], {
    timeout: 20_000,
  });
  return stdout;
}

async function untilEachKnowsAll(ports: readonly number[], masters: number): Promise<void> {
  for (const port of ports)
    for (;;) {
      const [info, nodes, replication] = await Promise.all([
        runRedisCli(port, ['cluster', 'info']),
        runRedisCli(port, ['cluster', 'nodes']),
        runRedisCli(port, ['info', 'replication']),
      ]);
      const replicas = nodes.split('\n').filter((line) => / (?:myself,)?slave /.test(line)).length;
      const isLinked = /master_link_status:up/.test(replication) || /connected_slaves:[1-9]/.test(replication);
      if (/cluster_state:ok/.test(info) && replicas === masters && isLinked) break;
    }
}

async function masterPort(ports: readonly number[], key: string): Promise<number> {
  for (const port of ports) {
    const slot = Number(await runRedisCli(port, ['cluster', 'keyslot', key]).catch(() => Number.NaN));
    if (Number.isNaN(slot)) continue;
    for (const line of (await runRedisCli(port, ['cluster', 'nodes'])).split('\n')) {
      const [, address = '', flags = '', , , , , , ...ranges] = line.split(' ');
      if (!/\bmaster\b/.test(flags) || /fail/.test(flags)) continue;
      if (ranges.some((range) => isIn(slot, range))) return Number(/:(\d+)@/.exec(address)?.[1]);
    }
  }
  throw new Error(`no node answers for ${key}`);
}

function isIn(slot: number, range: string): boolean {
  const [first, last = first] = range.split('-').map(Number);
  return first !== undefined && slot >= first && slot <= (last ?? first);
}
