/** Connections reconnect after every interruption except their own `disconnect()`. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { connectStore, type ConnectStoreOptions, type StoreConnection, untilAnswered } from '@darkroom/store';
import {
  runRedisCli,
  freePort,
  startRedisBehindSentinel,
  startRedisCluster,
  startRedisServer,
  startTcpProxy,
} from '@darkroom/testing/processes';
import type { Cluster } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';

interface Servers {
  url: string;
  stop(): Promise<void>;
}

async function startOne(): Promise<Servers & { port: number }> {
  const port = await freePort();
  const server = await startRedisServer({ args: () => ['--port', `${port}`, '--bind', '127.0.0.1'] });
  return { url: `redis://127.0.0.1:${port}`, port, stop: () => server.stop() };
}

function connect(servers: Servers, options: Omit<ConnectStoreOptions, 'url'> = {}): StoreConnection {
  const store = connectStore({ url: servers.url, ...options });
  onTestFinished(async () => {
    await store.close();
    await servers.stop();
  });
  return store;
}

const kinds: [string, () => Promise<Servers>][] = [
  ['one server', startOne],
  ['Sentinels', () => startRedisBehindSentinel()],
  ['a Cluster', () => startRedisCluster()],
];

it.each(kinds)('reconnects to %s when a reconnect is requested while it connects', async (_kind, start) => {
  const { redis } = connect(await start());
  expect(redis.status).toBe('connecting');
  redis.disconnect(true);
  expect(await redis.ping()).toBe('PONG');
});

it.each(kinds)('stays closed when closed while it connects to %s', async (_kind, start) => {
  const { redis } = connect(await start());
  // An ioredis 6.0.0 Cluster that is closed before it knows its nodes never emits `end`.
  await setImmediate();
  redis.disconnect();
  await once(redis, 'end');
  await expect(redis.ping()).rejects.toThrow(/closed|ended|None of startup nodes/i);
});

it('reconnects when its connector disconnects during the Sentinel lookup of the master', async () => {
  const store = connect(await startRedisBehindSentinel());
  // A failover that Sentinel announces does the same.
  (store.redis as unknown as { connector: { disconnect(): void } }).connector.disconnect();
  expect(await untilAnswered(store, { untilMs: Infinity }, () => store.redis.ping())).toBe('PONG');
});

it('reconnects when a server accepts the connection and never answers', async () => {
  const { port, ...server } = await startOne();
  const proxy = await startTcpProxy({ host: '127.0.0.1', port }, { host: '127.0.0.1', port: 0 });
  proxy.delayMs = 600_000;
  const url = `redis://127.0.0.1:${proxy.port}`;
  const stop = async (): Promise<void> => {
    proxy.stop();
    await server.stop();
  };
  const { redis } = connect({ url, stop }, { silenceMs: 200 });
  await once(redis, 'connect');
  proxy.silence();
  proxy.delayMs = 0;
  expect(await redis.ping()).toBe('PONG');
});

it('a reconnected Cluster connection works after slots were without a master', async () => {
  const cluster = await startRedisCluster();
  const redis = connect(cluster).redis as Cluster;
  // BullMQ does the same with the blocking connection of a worker.
  const blocking = redis.duplicate();
  onTestFinished(() => blocking.disconnect());
  expect(await blocking.ping()).toBe('PONG');
  const ports = redis.nodes().map(({ options }) => options.port);
  await Promise.all(ports.map((port) => runRedisCli(port, ['cluster', 'delslots', '0'])));
  blocking.disconnect();
  await once(blocking, 'end');
  await blocking.connect();
  const reading = blocking.get('darkroom');
  const { port } = await cluster.masterOf('darkroom');
  await runRedisCli(port, ['cluster', 'addslots', '0']);
  expect(await reading).toBeNull();
});
