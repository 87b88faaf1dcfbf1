/** What stands in front of several APIs: each new connection goes to the next of them that takes it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Balancer {
  url: string;
  /** Addresses of the APIs, to be changed at will. */
  targets: string[];
}

export async function startBalancer(targets: string[]): Promise<Balancer> {
  const balancer: Balancer = { url: '', targets };
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true }, (near) => {
    open.add(near);
    near.on('error', () => near.destroy()).once('close', () => open.delete(near));
    const order = balancer.targets.map((_target, index) => balancer.targets[(turn + index) % balancer.targets.length]!);
    turn++;
    forward(near, order);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  balancer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return balancer;
}

/** Connects to the first target that listens. */
function forward(near: Socket, [target, ...others]: readonly string[]): void {
  if (target === undefined) return void near.destroy();
  const { hostname, port } = new URL(target);
  const far = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  let isConnected = false;
  far.once('connect', () => {
    isConnected = true;
    near.pipe(far).pipe(near);
    near.once('close', () => far.destroy());
    far.once('close', () => near.destroy());
  });
  far.once('error', () => {
    if (!isConnected) forward(near, others);
  });
}
