/** Webhook receiver that refuses some messages once or twice and accepts their retries. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Dice } from '../dice.ts';
import type { History } from '../history.ts';

const refusedShare = 0.15;
/** Each refusal delays the message by the sender's back-off: 5 s, then 15 s. */
const maxRefusals = 2;

export interface Receiver {
  url: string;
  stop(): void;
}

export async function startReceiver(history: History, dice: Dice): Promise<Receiver> {
  const refusals = new Map<string, number>();
  const server = createServer((request, response) => {
    void (async () => {
      const { type, data } = JSON.parse(await text(request)) as { type: string; data: { request_id: string } };
      const id = String(request.headers['webhook-id']);
      const refused = refusals.get(id) ?? 0;
      const isRefused = refused < maxRefusals && dice.chance(refusedShare);
      if (isRefused) refusals.set(id, refused + 1);
      const answer = isRefused ? 503 : 204;
      history.add({ what: 'webhook', request: data.request_id, id, type, answer });
      response.writeHead(answer).end();
    })().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
