/** TCP load balancer in front of several APIs: round-robin, skipping APIs that refuse the connection. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Balancer {
  url: string;
  /** URLs of the APIs; a test may change them at any time. */
  targets: string[];
}

export async function startBalancer(targets: string[]): Promise<Balancer> {
  const balancer: Balancer = { url: '', targets };
  const sockets = new Set<Socket>();
  let next = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    sockets.add(client);
    client.on('error', () => client.destroy()).once('close', () => sockets.delete(client));
    const order = balancer.targets.map((_target, index) => balancer.targets[(next + index) % balancer.targets.length]!);
    next++;
    forward(client, order);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  balancer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return balancer;
}

/** Connects the client to the first target that accepts; closes the client if no target does. */
function forward(client: Socket, [target, ...others]: readonly string[]): void {
  if (target === undefined) return void client.destroy();
  const { hostname, port } = new URL(target);
  const upstream = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let isConnected = false;
  upstream.once('connect', () => {
    isConnected = true;
    client.pipe(upstream).pipe(client);
    client.once('close', () => upstream.destroy());
    upstream.once('close', () => client.destroy());
  });
  upstream.once('error', () => {
    if (!isConnected) forward(client, others);
  });
}
