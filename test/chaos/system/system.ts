/** The processes of a run: two or more of each, models of both kinds, each with its own way to Redis. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { connectStore, type StoreConnection } from '@darkroom/store';
import { freePort, freePorts, type PartName, startTcpProxy } from '@darkroom/testing/processes';
import type { History } from '../history.ts';
import { type BytesPlace, type ChaosBytes, startBytes } from './byte-store.ts';
import { type Failover, startFailover } from './failover.ts';
import { Member } from './member.ts';
import { buildOlder } from './older.ts';
import { type ChaosRedis, type Fsync, startRedis } from './redis.ts';
import { settings } from './settings.ts';

export interface ChaosSystem {
  redis: ChaosRedis;
  bytes: ChaosBytes;
  /** Straight to Redis, past all proxies. */
  store: StoreConnection;
  members: Member[];
  /** Of the APIs. */
  urls: string[];
  logFile: string;
  /** Where the build of an older version is, if there is one. */
  older: string | undefined;
  /** The server behind the workers with EXECUTOR=http. */
  upstream: { pid: () => number; kill: (downMs: number) => Promise<void> };
  stop(): Promise<void>;
}

const root = new URL('../../../../', import.meta.url).pathname;
const fixtures = join(root, 'test/chaos/fixtures');
/** Whose masters are lost. */
const lossy = ['{emoji-sd}', '{emoji-writer}', '{_webhooks}', '{upstream}'];
const oneThread = { NUM_THREADS: '1' };
/** Shorter than a freeze, so that who asks them gives some of their calls up. */
const impatience = { ENGINE_TIMEOUT_S: '6' };

export interface StartSystemOptions {
  redis: Fsync | Failover;
  bytes: BytesPlace;
  history: History;
  /** Directory of the log. */
  out: string;
  /** Of each model. */
  shards: number;
  /** A commit, to be built beside this one. */
  older: string | undefined;
}

export async function startSystem(options: StartSystemOptions): Promise<ChaosSystem> {
  const { history, out, shards, older: commit } = options;
  const logFile = join(out, 'log.jsonl');
  const older = commit === undefined ? undefined : buildOlder(commit, join(out, 'older'));
  const onCrash =
    (process: string) =>
    (how: string): void =>
      history.add({ what: 'crash', process, how });
  const redis =
    options.redis === 'sentinel' || options.redis === 'cluster'
      ? await startFailover(options.redis, lossy)
      : await startRedis(options.redis, onCrash('redis-server'));
  const bytes = await startBytes(options.bytes);
  const store = connectStore({ url: redis.url, prefix: settings.REDIS_PREFIX });
  const ports = await freePorts(2);
  const upstream = await startUpstream();
  const members: Member[] = [];
  // Whatever way the run ends, nothing of it stays.
  process.once('exit', () => {
    for (const member of members) member.signal('SIGKILL');
    upstream.stop();
    bytes.stop();
    redis.abandon();
  });
  const add = async (
    app: PartName,
    name: string,
    extra: Record<string, string> = {},
    models: readonly string[] = [],
  ): Promise<void> => {
    const proxy =
      redis.port === undefined
        ? undefined
        : await startTcpProxy({ host: '127.0.0.1', port: redis.port }, { host: '127.0.0.1', port: 0 });
    const REDIS_URL = proxy === undefined ? redis.url : `redis://127.0.0.1:${proxy.port}`;
    const environment = { ...settings, ...bytes.environment, REDIS_URL, ...extra };
    members.push(new Member({ name, app, models, proxy, logFile, environment, onCrash: onCrash(name) }));
  };
  for (const number of [1, 2]) {
    await add('api', `api-${number}`, { PORT: `${ports[number - 1]}` });
    await add('batch-former', `former-${number}`);
    await add('janitor', `janitor-${number}`, { MODEL_SHARDS: `${shards}` });
    await add('webhook-sender', `sender-${number}`);
    await add('worker', `painter-${number}`, { MODEL_DIR: 'models/emoji-sd', ...oneThread }, ['emoji-sd']);
  }
  const writers = ['emoji-writer', 'emoji-writer-diffusion'];
  const MODEL_DIRS = writers.map((model) => `models/${model}`).join();
  await add('worker', 'writer', { MODEL_DIRS, ...oneThread }, writers);
  const server = { EXECUTOR: 'http', UPSTREAM_URL: `http://127.0.0.1:${upstream.port}`, UPSTREAM_SLOTS: '2' };
  // One model by either API: what one has begun the other may go on with.
  for (const UPSTREAM_API of ['llama.cpp', 'openai'])
    await add('worker', `upstream-${UPSTREAM_API}`, { MODEL_ID: 'upstream', UPSTREAM_API, ...server, ...impatience }, [
      'upstream',
    ]);
  await add('worker', 'module', { EXECUTOR: join(fixtures, 'module.mjs'), MODEL_ID: 'module', ...impatience }, [
    'module',
  ]);
  const stop = async (): Promise<void> => {
    await Promise.all(members.map((member) => member.stop()));
    upstream.stop();
    bytes.stop();
    await store.close();
    await redis.stop();
  };
  try {
    await Promise.all(members.map((member) => member.ready));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    redis,
    bytes,
    store,
    members,
    urls: ports.map((port) => `http://127.0.0.1:${port}`),
    logFile,
    older,
    upstream,
    stop,
  };
}

async function startUpstream() {
  const port = await freePort();
  const start = async (): Promise<ChildProcess> => {
    const child = fork(join(fixtures, 'server.mjs'), [`${port}`], { execArgv: [] });
    await once(child, 'message');
    return child;
  };
  let child = await start();
  return {
    port,
    pid: () => child.pid!,
    async kill(downMs: number) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
      await new Promise((resolve) => void setTimeout(resolve, downMs));
      child = await start();
    },
    stop: () => void child.kill('SIGKILL'),
  };
}
