/** Connections behind Sentinels, which must resolve the master's address first. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { connectStore, openInbox } from '@darkroom/store';
import { runRedisCli, startRedisBehindSentinel, startTcpProxy } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

/** Starts a server that accepts connections and never answers. */
async function startSilentServer(): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on('error', () => {}))).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('skips a Sentinel that hangs', { timeout: 60_000 }, async () => {
  const redis = await startRedisBehindSentinel();
  onTestFinished(() => redis.stop());
  const silent = await startSilentServer();
  const store = connectStore({ url: redis.url.replace('@', `@${silent},`) });
  onTestFinished(() => store.close());
  expect(await store.redis.ping()).toBe('PONG');
});

it('reads an inbox once the master is resolved, even if that takes longer than the inbox timeout', async () => {
  const redis = await startRedisBehindSentinel();
  onTestFinished(() => redis.stop());
  // Four silent Sentinels delay the connection longer than the inbox's timeout for a broken connection.
  const silent = await Promise.all(Array.from({ length: 4 }, startSilentServer));
  const store = connectStore({ url: redis.url.replace('@', `@${silent.join()},`) });
  onTestFinished(() => store.close());
  const inbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
  expect(await inbox.next(0.1)).toEqual([]);
});

it(
  'reconnects when the failover message arrives while a connection is resolving the master',
  { timeout: 120_000 },
  async () => {
    const redis = await startRedisBehindSentinel();
    onTestFinished(() => redis.stop());
    const ports = [...redis.url.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
    const proxies = await Promise.all(
      ports.map((port) => startTcpProxy({ host: '127.0.0.1', port }, { host: '127.0.0.1', port: 0 })),
    );
    const url = ports.reduce((all, port, at) => all.replace(`:${port}`, `:${proxies[at]!.port}`), redis.url);
    const stores = Array.from({ length: 12 }, () => connectStore({ url }));
    onTestFinished(async () => {
      for (const store of stores) await store.close();
      for (const proxy of proxies) proxy.stop();
    });
    const pings = (): Promise<string[]> => Promise.all(stores.map((store) => store.redis.ping()));
    await pings();
    // Sentinels announce each other, so each store also subscribes to each Sentinel directly for failover messages.
    const listeners = async (): Promise<number> =>
      (await runRedisCli(ports[2], ['client', 'list'])).match(/ sub=1 /g)?.length ?? 0;
    await expect.poll(listeners).toBeGreaterThan(stores.length);
    for (const proxy of proxies) proxy.delayMs = 600;
    const before = await redis.master();
    await before.server.kill();
    // Each PING is sent once its connection is open again.
    expect(await pings()).toEqual(stores.map(() => 'PONG'));
    expect((await redis.master()).port).not.toBe(before.port);
    expect(await pings()).toEqual(stores.map(() => 'PONG'));
  },
);
