/** Darkroom as `npm start` runs it, with all its processes and a private Redis with the same settings. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startPrivateRedis } from '@darkroom/testing';
import {
  type ImageRequest,
  batchSize,
  clientsOf,
  freePort,
  modelDirectory,
  type Peer,
  post,
  startProgram,
  threads,
  waitUntilReady,
} from './peer.ts';
import { firstRequest } from './scenes.ts';

const root = new URL('../../', import.meta.url).pathname;

export const darkroom: Peer = { name: 'Darkroom', batches: 'joining rows', start };

async function start() {
  // The settings of tools/start/redis-settings.mjs.
  const redis = await startPrivateRedis(['--appendonly', 'yes', '--appendfsync', 'everysec']);
  const scratch = mkdtempSync(join(tmpdir(), 'peers-'));
  const logFile = join(scratch, 'log.jsonl');
  const port = await freePort();
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    // Makes it end with its parent, as under npm start.
    npm_lifecycle_event: 'start',
    REDIS_URL: redis.url,
    HOST: '127.0.0.1',
    PORT: `${port}`,
    METRICS_PORT: '0',
    LOG_FILE: logFile,
    MODEL_DIR: modelDirectory,
    NUM_THREADS: `${threads}`,
    BATCH_MAX_SIZE: `${batchSize}`,
  };
  const started = startProgram(process.execPath, ['tools/start.mjs'], { cwd: root, env });
  started.child.stdout!.resume();
  const paint = async (request: ImageRequest, leave?: AbortSignal): Promise<Uint8Array> => {
    const response = await post(`http://127.0.0.1:${port}/v1/images/generations`, bodyOf(request), leave);
    const { data } = (await response.json()) as { data: { b64_json: string }[] };
    return Buffer.from(data[0]!.b64_json, 'base64');
  };
  await waitUntilReady(started, () => paint(firstRequest));
  const workers = await metricsOfWorkers(logFile);
  return {
    paint,
    paintAll: clientsOf(paint),
    rowSteps: async () => sum(await Promise.all(workers.map(rowStepsAt))),
    pids: () => [...started.pids(), redis.process.pid!],
    async stop() {
      await started.stop();
      await redis.stop();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
}

function bodyOf({ prompt, steps, guidance, seed, width, height }: ImageRequest): object {
  return { prompt, num_inference_steps: steps, guidance_scale: guidance, seed, size: `${width}x${height}` };
}

/** Returns the metrics URLs of the processes that have counted row steps. */
async function metricsOfWorkers(logFile: string): Promise<string[]> {
  const found = readFileSync(logFile, 'utf8').matchAll(/"metrics_url":"(?<url>[^"]+)"/g);
  const urls = [...found].map(({ groups }) => groups!['url']!);
  const counts = await Promise.all(urls.map(rowStepsAt));
  return urls.filter((_, at) => counts[at]! > 0);
}

async function rowStepsAt(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const counts = text.matchAll(/^darkroom_row_steps_total\{.*\} (?<count>\S+)$/gm);
  return sum([...counts].map(({ groups }) => Number(groups!['count'])));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
