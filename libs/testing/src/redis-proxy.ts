/** A way to the run's Redis that can fail as networks do. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';

export interface RedisProxy {
  /** As `REDIS_URL` takes it. */
  url: string;
  /** The connections that are open now carry nothing any more, and neither side hears of it. */
  silence(): void;
  /** What is asked next on a connection that is open now is done by Redis; instead of its answer the connection ends. */
  loseNextAnswer(): void;
  /** Connections that ended instead of an answer. */
  readonly lostAnswers: number;
}

/** A socket of the run's Redis. */
export function connectToRedis(): Socket {
  const { protocol, pathname, hostname, port } = new URL(inject('redisUrl'));
  return connect(protocol === 'unix:' ? { path: pathname } : { host: hostname, port: Number(port) });
}

/** Open until the test is over. */
export async function openRedisProxy(): Promise<RedisProxy> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-proxy-'));
  const path = join(directory, 'proxy.sock');
  const pairs = new Set<{ near: Socket; far: Socket }>();
  let lostAnswers = 0;
  const server = createServer((near) => {
    const far = connectToRedis();
    const pair = { near, far };
    for (const socket of [near, far]) {
      socket.on('error', () => {});
      socket.on('close', () => {
        pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far).pipe(near);
    pairs.add(pair);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const { near } of pairs) near.destroy();
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return {
    url: `unix://${path}`,
    silence() {
      for (const { near, far } of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    loseNextAnswer() {
      for (const { near, far } of pairs) {
        far.unpipe(near).once('data', () => {
          lostAnswers += 1;
          near.destroy();
        });
        far.resume();
      }
    },
    get lostAnswers() {
      return lostAnswers;
    },
  };
}
