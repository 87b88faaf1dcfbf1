/** What is different behind Sentinels: who the server is has to be asked first. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { connectStore } from '@darkroom/store';
import { startRedisBehindSentinel } from '@darkroom/testing';
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
