/** A way to a server that can fail as networks do. */
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
  /** Of the proxy, where it listens on TCP; 0 on a Unix socket. */
  readonly port: number;
  /** From now on each piece takes so long, either way, ms. */
  delayMs: number;
  /** While it is so, new connections end at once. */
  isRefusing: boolean;
  /** Ends the connections that are open now. */
  cut(): void;
  /** The connections that are open now carry nothing any more, and neither side hears of it. */
  silence(): void;
  /** What is asked next on a connection that is open now is done by the server; instead of its answer the connection ends. */
  loseNextAnswer(): void;
  /** Connections that ended instead of an answer. */
  readonly lostAnswers: number;
  stop(): void;
}

interface Pair {
  near: Socket;
  far: Socket;
}

/** Listens and forwards to `target`. */
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
