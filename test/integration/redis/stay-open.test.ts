/** Connections that nobody closed: whatever ends them on their way, they are there again. */
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { connectStore, type ConnectStoreOptions, type StoreConnection, untilAnswered } from '@darkroom/store';
import {
  ask,
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

it.each(kinds)('asked to connect anew to %s while it connects, it does', async (_kind, start) => {
  const { redis } = connect(await start());
  expect(redis.status).toBe('connecting');
  redis.disconnect(true);
  expect(await redis.ping()).toBe('PONG');
});

it.each(kinds)('closed while it connects to %s, it stays closed', async (_kind, start) => {
  const { redis } = connect(await start());
  // Closed before it knows its addresses, a Cluster of ioredis 6.0.0 never says that it has ended.
  await setImmediate();
  redis.disconnect();
  await once(redis, 'end');
  await expect(redis.ping()).rejects.toThrow(/closed|ended|None of startup nodes/i);
});

it('ended by what it is made of while it asks Sentinels who the master is, it asks again', async () => {
  const store = connect(await startRedisBehindSentinel());
  // As a failover that it is told of does.
  (store.redis as unknown as { connector: { disconnect(): void } }).connector.disconnect();
  expect(await untilAnswered(store, { untilMs: Infinity }, () => store.redis.ping())).toBe('PONG');
});

it('taken by a server that says nothing, it connects anew', async () => {
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

it('connected anew while a Cluster has slots without a master, it is there', async () => {
  const cluster = await startRedisCluster();
  const redis = connect(cluster).redis as Cluster;
  // As BullMQ does with the connection on which it waits for jobs, and waits for that.
  const blocking = redis.duplicate();
  onTestFinished(() => blocking.disconnect());
  expect(await blocking.ping()).toBe('PONG');
  const ports = redis.nodes().map(({ options }) => options.port);
  await Promise.all(ports.map((port) => ask(port, ['cluster', 'delslots', '0'])));
  blocking.disconnect();
  await once(blocking, 'end');
  await blocking.connect();
  const reading = blocking.get('darkroom');
  const { port } = await cluster.masterOf('darkroom');
  await ask(port, ['cluster', 'addslots', '0']);
  expect(await reading).toBeNull();
});
