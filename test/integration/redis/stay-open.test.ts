/** Connections that nobody closed: whatever ends them on their way, they are there again. */
import { once } from 'node:events';
import { connectStore, type StoreConnection, untilAnswered } from '@darkroom/store';
import { freePort, startRedisBehindSentinel, startRedisCluster, startRedisServer } from '@darkroom/testing/processes';
import { describe, expect, it, onTestFinished } from 'vitest';

interface Servers {
  url: string;
  stop(): Promise<void>;
}

const kinds: [string, () => Promise<Servers>][] = [
  [
    'one server',
    async () => {
      const port = await freePort();
      const server = await startRedisServer({ args: () => ['--port', `${port}`, '--bind', '127.0.0.1'] });
      return { url: `redis://127.0.0.1:${port}`, stop: () => server.stop() };
    },
  ],
  ['Sentinels', () => startRedisBehindSentinel()],
  ['a Cluster', () => startRedisCluster()],
];

describe.each(kinds)('to %s', (_kind, start) => {
  async function open(): Promise<StoreConnection> {
    const servers = await start();
    const store = connectStore({ url: servers.url });
    onTestFinished(async () => {
      await store.close();
      await servers.stop();
    });
    return store;
  }

  it('asked to connect anew while it connects, it does', async () => {
    const { redis } = await open();
    expect(redis.status).toBe('connecting');
    redis.disconnect(true);
    expect(await redis.ping()).toBe('PONG');
  });

  it('closed while it connects, it stays closed', async () => {
    const { redis } = await open();
    redis.disconnect();
    await once(redis, 'end');
    await expect(redis.ping()).rejects.toThrow(/closed|ended|None of startup nodes/i);
  });
});

it('ended by what it is made of while it asks Sentinels who the master is, it asks again', async () => {
  const servers = await startRedisBehindSentinel();
  const store = connectStore({ url: servers.url });
  onTestFinished(async () => {
    await store.close();
    await servers.stop();
  });
  // As a failover that it is told of does.
  (store.redis as unknown as { connector: { disconnect(): void } }).connector.disconnect();
  expect(await untilAnswered(store, { untilMs: Infinity }, () => store.redis.ping())).toBe('PONG');
});
