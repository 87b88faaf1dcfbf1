// Counts the files and functions of apps and libs that one request runs in the API, by V8's coverage: the walks of
// docs/architecture.md that the API takes part in. `node tools/measure-walks.mjs [--list]` after `npm run build`;
// `--list` names the functions.
import { mkdtempSync, rmSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createEventHub, openStore } from '@darkroom/store';
import { launchPart, startRedisServer } from '@darkroom/testing/processes';
import { loadConfig } from '@darkroom/config';
import { createLogger } from '@darkroom/service';
import { createApp } from '../apps/api/dist/app.js';
import { ApiServer } from '../apps/api/dist/server/api-server.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const isListed = process.argv.includes('--list');
const isOurs = /\/(?:apps|libs)\/[^/]+\/dist\//;

const directory = mkdtempSync(path.join(tmpdir(), 'walks-'));
const redis = await startRedisServer({
  args: (home) => ['--port', '0', '--unixsocket', path.join(home, 'redis.sock')],
});
const redisUrl = `unix://${path.join(redis.directory, 'redis.sock')}`;
const environment = { REDIS_URL: redisUrl, LOG_LEVEL: 'warn' };
const parts = [
  launchPart('batch-former', environment, path.join(directory, 'log')),
  ...['emoji-sd', 'emoji-writer'].map((model) =>
    launchPart('worker', { ...environment, MODEL_DIR: `models/${model}` }, path.join(directory, 'log')),
  ),
];
const draining = new AbortController();
const config = loadConfig('api', environment);
const log = createLogger({ app: 'api', level: 'warn' });
const store = openStore({ config, log, stopSignal: draining.signal });
const api = createApp({ store, hub: createEventHub(store), config, log, draining: draining.signal });
const server = new ApiServer({ api, host: '127.0.0.1', port: 0, draining, log });
const session = new Session();
let url;
session.connect();
try {
  await Promise.all([server.start(), ...parts.map(({ ready }) => ready)]);
  url = server.url;
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const image = { model: 'emoji-sd', prompt: 'a fox', num_inference_steps: 8, preview: { every: 2 } };
  const submit = async () => JSON.parse(await send('/v1/predict', image)).request_id;
  const follow = (id) => send(`/v1/predict/${id}/events`, undefined, { 'Last-Event-ID': '1' });
  const chat = { model: 'emoji-writer', max_tokens: 8, messages: [{ role: 'user', content: 'a fox' }] };
  await measure('POST /v1/predict', submit);
  await measure('streamed chat', () => send('/v1/chat/completions', { ...chat, stream: true }));
  const id = await submit();
  await follow(id);
  await measure('stream that resumes', () => follow(id));
  await measure('image and its stream', async () => follow(await submit()));
} finally {
  session.disconnect();
  await server.stop();
  await Promise.all(parts.map((part) => part.stop()));
  await store.close();
  await redis.stop();
  rmSync(directory, { recursive: true });
}
process.exit();

/** Sends a request and returns the body of its answer; without a body it is a GET. */
async function send(route, body, headers = {}) {
  const post = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
  const response = await fetch(`${url}${route}`, body === undefined ? { headers } : post);
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${route}: ${text}`);
  return text;
}

/** Runs a request twice, so that the second loads and creates nothing for the first time, and prints its coverage. */
async function measure(name, request) {
  await request();
  await session.post('Profiler.takePreciseCoverage');
  await request();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const files = result
    .filter(({ url }) => isOurs.test(url))
    .map(({ url, functions }) => ({ file: url.slice(url.indexOf(root) + root.length), ran: ranOf(functions) }))
    .filter(({ ran }) => ran.length > 0);
  const functions = files.flatMap(({ ran }) => ran);
  // The count of an async function includes its continuations, so this counts the guard's only other function.
  const guard = files.find(({ file }) => file.endsWith('/store-guard.js'))?.ran;
  const guarded = guard?.find(({ name }) => name === '=>')?.count ?? 0;
  const commands = result
    .filter(({ url }) => url.includes('/ioredis/'))
    .flatMap(({ functions }) => ranOf(functions))
    .find(({ name }) => name === 'sendCommand');
  console.log(
    `${name}: ${files.length} files, ${functions.length} functions, ${guarded} guarded store calls, ${commands?.count ?? 0} Redis commands`,
  );
  if (!isListed) return;
  for (const { file, ran } of files)
    console.log(`  ${file}: ${ran.map(({ name, count }) => `${name}${count > 1 ? `×${count}` : ''}`).join(', ')}`);
}

/** Returns the functions that were called, with the number of calls. */
function ranOf(functions) {
  return functions
    .map(({ functionName, ranges: [range] }) => ({ name: functionName || '=>', count: range.count }))
    .filter(({ count }) => count > 0);
}
