/** What is different behind Sentinels: who the server is has to be asked first. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { connectStore, openInbox } from '@darkroom/store';
import { ask, startRedisBehindSentinel, startTcpProxy } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

/** Takes connections and says nothing. */
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

it('a Sentinel that hangs is passed over', { timeout: 60_000 }, async () => {
  const redis = await startRedisBehindSentinel();
  onTestFinished(() => redis.stop());
  const silent = await startSilentServer();
  const store = connectStore({ url: redis.url.replace('@', `@${silent},`) });
  onTestFinished(() => store.close());
  expect(await store.redis.ping()).toBe('PONG');
});

it('an inbox that is not told anything while Sentinels are asked is read once they have answered', async () => {
  const redis = await startRedisBehindSentinel();
  onTestFinished(() => redis.stop());
  // Longer than an inbox waits for an answer before it takes its connection for broken.
  const silent = await Promise.all(Array.from({ length: 4 }, startSilentServer));
  const store = connectStore({ url: redis.url.replace('@', `@${silent.join()},`) });
  onTestFinished(() => store.close());
  const inbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
  expect(await inbox.next(0.1)).toEqual([]);
});

it(
  'connections that ask who the master is when they are told of the failover are there again',
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
    // Sentinels name each other, and so each is listened to directly too: that is how they are told.
    const listeners = async (): Promise<number> =>
      (await ask(ports[2], ['client', 'list'])).match(/ sub=1 /g)?.length ?? 0;
    await expect.poll(listeners).toBeGreaterThan(stores.length);
    for (const proxy of proxies) proxy.delayMs = 600;
    const before = await redis.master();
    await before.server.kill();
    // Each is sent once its connection is there.
    expect(await pings()).toEqual(stores.map(() => 'PONG'));
    expect((await redis.master()).port).not.toBe(before.port);
    expect(await pings()).toEqual(stores.map(() => 'PONG'));
  },
);
