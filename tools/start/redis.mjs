// Finds or gets a Redis. One that nobody named is never touched: a private server is on a socket or a port of its own,
// with its data in .darkroom/redis.
import { randomBytes } from 'node:crypto';
import { dockerRedis } from './redis-docker.mjs';
import { findOrInstallRedisProgram } from './redis-install.mjs';
import { askRedis, untilRedisAnswers } from './redis-ping.mjs';
import { chooseEndpoint, stopLeftover, writeRedisSettings } from './redis-settings.mjs';
import { Part } from './part.mjs';
import { SetupError, say } from './say.mjs';

/**
 * @param directory where a private server keeps its data
 * @returns url, and the part to be supervised when the server is our own
 */
export async function provideRedis({ directory, env = process.env, timing }) {
  if (env.REDIS_URL) {
    await checkNamedRedis(env.REDIS_URL);
    return { url: env.REDIS_URL, part: undefined };
  }
  const program = await findOrInstallRedisProgram(env);
  if (program) return privateRedis({ directory, program, timing });
  const docker = await dockerRedis({ directory, env });
  if (docker) return { url: docker.url, part: redisPart({ ...docker, timing }) };
  throw new SetupError(
    [
      'No Redis was found, and none may be installed, or none can be without asking you. Any one of these helps:',
      '  Debian, Ubuntu   sudo apt-get install redis-server',
      '  macOS            brew install redis',
      '  Docker           start it, and run this again',
      '  a Redis you have REDIS_URL=redis://host:6379 npm start',
    ].join('\n'),
  );
}

async function privateRedis({ directory, program, timing }) {
  const endpoint = await chooseEndpoint(directory, () => randomBytes(24).toString('hex'));
  const file = writeRedisSettings({ directory, ...endpoint });
  say(`using ${program} on ${endpoint.socket ?? `port ${endpoint.port}`}, data and redis.log in ${directory}`);
  // Every start, not only ours: a guard that was killed may have left its server behind.
  const prepare = () => stopLeftover(endpoint.url);
  return { url: endpoint.url, part: redisPart({ url: endpoint.url, command: [program, file], prepare, timing }) };
}

function redisPart({ url, command, prepare, timing }) {
  return new Part({
    name: 'redis',
    command,
    prepare,
    isReady: (_, signal) => untilRedisAnswers(url, signal),
    timing,
  });
}

async function checkNamedRedis(url) {
  // Of several servers one may well be away; the processes find those that are there.
  if (/^rediss?-(?:cluster|sentinel):/.test(url)) return;
  let reply;
  try {
    reply = await askRedis(url, ['PING']);
  } catch (error) {
    throw new SetupError(`The Redis that REDIS_URL names cannot be reached: ${error.message || error.code}`);
  }
  if (/^[+]PONG|^-LOADING/.test(reply)) return;
  throw new SetupError(`The Redis that REDIS_URL names refuses us: ${reply.replace(/^-/, '')}`);
}
