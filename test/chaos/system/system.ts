/** The processes of a run: two of each app, workers for image and text models, each with its own proxy to Redis. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { connectStore, type StoreConnection } from '@darkroom/store';
import { freePort, freePorts, type PartName, startTcpProxy } from '@darkroom/testing/processes';
import type { History } from '../history.ts';
import { type BytesBackend, type ChaosBytes, startBytes } from './byte-store.ts';
import { type Failover, startFailover } from './failover.ts';
import { Member } from './member.ts';
import { buildOlder } from './older.ts';
import { type ChaosRedis, type Fsync, startRedis } from './redis.ts';
import { settings } from './settings.ts';

export interface ChaosSystem {
  redis: ChaosRedis;
  bytes: ChaosBytes;
  /** Direct connection to Redis, without a proxy. */
  store: StoreConnection;
  members: Member[];
  /** Addresses of the APIs. */
  urls: string[];
  logFile: string;
  /** Directory of the build of an older version, if requested. */
  older: string | undefined;
  /** Upstream server of the workers with EXECUTOR=http. */
  upstream: { pid: () => number; kill: (downMs: number) => Promise<void>; cut: () => void };
  stop(): Promise<void>;
}

const root = new URL('../../../../', import.meta.url).pathname;
const fixtures = join(root, 'test/chaos/fixtures');
/** Hash tags whose masters the failover faults end. */
const failoverKeys = ['{emoji-sd}', '{emoji-writer}', '{_webhooks}', '{upstream}'];
const oneThread = { NUM_THREADS: '1' };
/** Shorter than a freeze, so that workers time out on a frozen upstream or module. */
const shortTimeout = { ENGINE_TIMEOUT_S: '6' };

export interface StartSystemOptions {
  redis: Fsync | Failover;
  bytes: BytesBackend;
  history: History;
  /** Directory for the log. */
  out: string;
  /** Number of shards per model. */
  shards: number;
  /** Commit of an older version to build. */
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
      ? await startFailover(options.redis, failoverKeys)
      : await startRedis(options.redis, onCrash('redis-server'));
  const bytes = await startBytes(options.bytes);
  const store = connectStore({ url: redis.url, prefix: settings.REDIS_PREFIX });
  const ports = await freePorts(2);
  const upstream = await startUpstream();
  const members: Member[] = [];
  // Kills all processes, however the run ends.
  process.once('exit', () => {
    for (const member of members) member.signal('SIGKILL');
    upstream.stop();
    bytes.stop();
    redis.killNow();
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
  // One model through both APIs: either worker may continue a request of the other.
  for (const UPSTREAM_API of ['llama.cpp', 'openai'])
    await add(
      'worker',
      `upstream-${UPSTREAM_API}`,
      { MODEL_ID: 'upstream', UPSTREAM_API, ...server, ...shortTimeout },
      ['upstream'],
    );
  const workflow = join(root, 'libs/executor/src/testing/workflows/text-to-image.json');
  const painters: Record<string, Record<string, string>> = {
    comfyui: { UPSTREAM_API: 'comfyui', UPSTREAM_WORKFLOW: workflow },
    sdcpp: { UPSTREAM_API: 'sdcpp' },
    'openai-images': { UPSTREAM_API: 'openai' },
  };
  for (const [model, api] of Object.entries(painters))
    await add('worker', `upstream-${model}`, { MODEL_ID: model, ...server, ...shortTimeout, ...api }, [model]);
  await add('worker', 'module', { EXECUTOR: join(fixtures, 'module.mjs'), MODEL_ID: 'module', ...shortTimeout }, [
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
    cut: () => void child.send('cut'),
    stop: () => void child.kill('SIGKILL'),
  };
}
