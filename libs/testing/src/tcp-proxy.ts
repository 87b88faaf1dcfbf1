/** A TCP proxy with injectable network faults. */
import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type ListenOptions,
  type Socket,
  type TcpNetConnectOpts,
} from 'node:net';
import { Transform } from 'node:stream';

export interface TcpProxy {
  /** TCP port of the proxy; 0 on a Unix socket. */
  readonly port: number;
  /** Delay of each chunk in both directions, ms. */
  delayMs: number;
  /** If true, new connections are closed at once. */
  isRefusing: boolean;
  /** Closes the open connections. */
  cut(): void;
  /** Stops forwarding on the open connections without closing them. */
  silence(): void;
  /** Forwards the next command on an open connection, then closes the connection instead of returning the answer. */
  loseNextAnswer(): void;
  /** Number of connections closed instead of an answer. */
  readonly lostAnswers: number;
  stop(): void;
}

interface Pair {
  near: Socket;
  far: Socket;
}

/** Starts a proxy that forwards to `target`. */
export async function startTcpProxy(
  target: TcpNetConnectOpts | { path: string },
  at: ListenOptions,
): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  const state = { delayMs: 0, isRefusing: false, lostAnswers: 0 };
  const slow = () =>
    new Transform({
      transform(chunk, _encoding, done) {
        if (state.delayMs === 0) done(null, chunk);
        else setTimeout(done, state.delayMs, null, chunk);
      },
    });
  const server = createServer((near) => {
    if (state.isRefusing) return void near.destroy();
    const pair = { near, far: connect(target) };
    for (const socket of [pair.near, pair.far]) {
      socket.on('error', () => {});
      socket.on('close', () => {
        pairs.delete(pair);
        pair.near.destroy();
        pair.far.destroy();
      });
    }
    near.pipe(slow()).pipe(pair.far).pipe(slow()).pipe(near);
    pairs.add(pair);
  });
  server.listen(at);
  await once(server, 'listening');
  const address = server.address() as AddressInfo | string;
  const cut = (): void => {
    for (const { near } of pairs) near.destroy();
  };
  return Object.assign(state, {
    port: typeof address === 'string' ? 0 : address.port,
    cut,
    silence() {
      for (const { near, far } of pairs) for (const socket of [near, far]) socket.unpipe().pause();
    },
    loseNextAnswer() {
      for (const { near, far } of pairs) {
        far.unpipe().once('data', () => {
          state.lostAnswers += 1;
          near.destroy();
        });
        far.resume();
      }
    },
    stop() {
      cut();
      server.close();
    },
  });
}
