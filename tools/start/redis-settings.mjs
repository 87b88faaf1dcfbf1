import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { askRedis } from './redis-ping.mjs';

/** Maximum length of a Unix socket path: 104 bytes on macOS (108 on Linux), including the terminating zero. */
const longestSocketPath = 103;

/**
 * Returns the private server's endpoint: a Unix socket in its directory, or a port with a password if the path is too
 * long.
 */
export async function chooseEndpoint(directory, makePassword) {
  const socket = join(directory, 'redis.sock');
  if (Buffer.byteLength(socket) <= longestSocketPath) return { socket, url: `unix://${socket}` };
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const file = join(directory, 'endpoint.json');
  const last = readEndpoint(file);
  // A server of a killed launcher still runs: reuse its port and password, with which prepare() stops it.
  const isLeftover = last !== undefined && (await answers(last.url));
  const endpoint = isLeftover ? last : withUrl({ port: await freePort(), password: makePassword() });
  writeFileSync(file, JSON.stringify(endpoint), { mode: 0o600 });
  return endpoint;
}

/** Writes redis.conf, which keeps the password out of the process list. Returns its path. */
export function writeRedisSettings({
  directory,
  socket,
  port,
  password,
  dataDirectory = directory,
  bind = '127.0.0.1',
}) {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lines = [
    socket ? `port 0\nunixsocket ${quote(socket)}\nunixsocketperm 700` : `port ${port}\nbind ${bind}`,
    password && `requirepass ${password}`,
    `dir ${quote(dataDirectory)}`,
    // Only the append-only file stores data; a killed server loses at most the last second.
    'appendonly yes\nappendfsync everysec\nsave ""',
    // A full Redis must refuse writes: eviction would lose requests.
    'maxmemory-policy noeviction',
    // Log to a file: even at this level Redis prints a banner.
    `loglevel warning\nlogfile ${quote(join(dataDirectory, 'redis.log'))}`,
  ];
  const file = join(directory, 'redis.conf');
  writeFileSync(file, `${lines.filter(Boolean).join('\n')}\n`, { mode: 0o600 });
  chmodSync(file, 0o600);
  return file;
}

/** Stops a server of a killed launcher, with its data saved. */
export async function stopLeftover(url) {
  if (!(await answers(url))) return;
  await askRedis(url, ['SHUTDOWN']).catch(() => {});
  while (await answers(url)) await delay(20);
}

export function freePort(host = '127.0.0.1') {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, host, () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

export function withUrl({ port, password }) {
  return { port, password, url: `redis://:${password}@127.0.0.1:${port}` };
}

/** Returns whether a server answers, loading or not, and accepts the password. */
async function answers(url) {
  const reply = await askRedis(url, ['PING']).catch(() => undefined);
  return reply !== undefined && /^[+]PONG|^-LOADING/.test(reply);
}

function readEndpoint(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

function quote(path) {
  return `"${path.replace(/[\\"]/g, '\\$&')}"`;
}
