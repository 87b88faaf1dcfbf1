/** A webhook receiver that verifies every signature with the library that real receivers use. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { listShards, readStats, type StoreConnection } from '@darkroom/store';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished } from 'vitest';

interface At {
  url: string;
}

interface Message {
  id: string;
  type: string;
  timestamp: string;
  data: { request_id: string; status: string; step?: number; images?: { url: string }[]; texts?: object[] };
}

export interface Receiver {
  url: string;
  /** Messages with a valid signature. */
  messages: Message[];
  /** Number of messages without a valid signature. */
  forged: number;
}

export async function secretOf({ url }: At): Promise<string> {
  return ((await (await fetch(`${url}/v1/webhooks/secret`)).json()) as { key: string }).key;
}

/** Starts a receiver that answers the n-th message with status `answer(n)`; undefined: never. */
export async function startReceiver(
  system: At,
  answer: (count: number) => number | undefined = () => 204,
): Promise<Receiver> {
  const webhook = new Webhook(await secretOf(system));
  const receiver: Receiver = { url: '', messages: [], forged: 0 };
  const server = createServer((request, response) => void receive(request, response));
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    try {
      const { type, timestamp, data } = webhook.verify(body, request.headers as Record<string, string>) as Message;
      receiver.messages.push({ id: String(request.headers['webhook-id']), type, timestamp, data });
    } catch {
      receiver.forged++;
    }
    const code = answer(receiver.messages.length);
    if (code !== undefined) response.writeHead(code).end();
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return receiver;
}

export function typesOf({ messages }: Receiver, id: string): string[] {
  return messages.filter(({ data }) => data.request_id === id).map(({ type }) => type);
}

/**
 * Waits until the outbox and the delivery queue are empty. A sender moves messages from the outbox one batch at a time.
 */
export async function untilAllDelivered({ store }: { store: StoreConnection }): Promise<void> {
  const queue = store.deliveries();
  const left = async (): Promise<number> => {
    const shards = await Promise.all((await listShards(store)).map((shard) => readStats(store, shard)));
    const moved = await queue.getJobCountByTypes('wait', 'active', 'delayed');
    return shards.reduce((sum, { outbox }) => sum + outbox, moved);
  };
  await expect.poll(left, { timeout: 30_000 }).toBe(0);
}
