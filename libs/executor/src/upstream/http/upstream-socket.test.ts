/** Bounds of the messages that wait for their reader. */
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { UpstreamSocket } from './upstream-socket.ts';

/** Sends messages to a socket that nothing reads. Resolves with it and with the error that ends it. */
async function flooded(messages: readonly (string | Buffer)[]) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  server.on('connection', (client) => {
    for (const message of messages) client.send(message);
    client.close();
  });
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let socket: UpstreamSocket | undefined;
  const error = await new Promise<Error>((resolve) => {
    socket = new UpstreamSocket(new WebSocket(url), new AbortController().signal, resolve);
  });
  return { socket: socket!, error };
}

const mib = 1024 * 1024;

it.each<[string, readonly (string | Buffer)[], string]>([
  ['many messages', Array.from({ length: 10_001 }, () => '{}'), 'sent more than 10000 messages at once'],
  ['large messages', Array.from({ length: 9 }, () => Buffer.alloc(8 * mib)), 'sent more than 67108864 bytes at once'],
])('cuts off a server that sends %s', async (_name, messages, expected) => {
  expect((await flooded(messages)).error.message).toBe(expected);
});

it('returns the messages of a socket that has closed before its error', async () => {
  const { socket, error } = await flooded([Buffer.alloc(64 * mib - 2), 'é']);
  expect(error.message).toBe('closed its WebSocket');
  expect(await socket.next(0)).toHaveLength(64 * mib - 2);
  expect(await socket.next(0)).toBe('é');
  await expect(socket.next(0)).rejects.toBe(error);
});
