// Provides a Redis. Other servers of this machine are never used unless REDIS_URL names them: a private server has its
// own socket or port, with its data in .darkroom/redis.
import { randomBytes } from 'node:crypto';
import { dockerRedis } from './redis-docker.mjs';
import { findOrInstallRedisProgram } from './redis-install.mjs';
import { startCommand } from './installation.mjs';
import { askRedis, untilRedisAnswers } from './redis-ping.mjs';
import { chooseEndpoint, stopLeftover, writeRedisSettings } from './redis-settings.mjs';
import { Part } from './part.mjs';
import { SetupError, say } from './say.mjs';

/**
 * @param directory holds the data of a private server
 * @returns the url, and a part to supervise if the server is private
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
      'No Redis was found, and none could be installed automatically. Do one of these:',
      '  Debian, Ubuntu   sudo apt-get install redis-server',
      '  macOS            brew install redis',
      '  Docker           start it, and run this again',
      `  a Redis you have REDIS_URL=redis://host:6379 ${startCommand}`,
    ].join('\n'),
  );
}

async function privateRedis({ directory, program, timing }) {
  const endpoint = await chooseEndpoint(directory, () => randomBytes(24).toString('hex'));
  const file = writeRedisSettings({ directory, ...endpoint });
  say(`using ${program} on ${endpoint.socket ?? `port ${endpoint.port}`}, data and redis.log in ${directory}`);
  // Before every start: a killed guard may have left its server running.
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
  // Some of several servers may be down; the processes find the others.
  if (/^rediss?-(?:cluster|sentinel):/.test(url)) return;
  let reply;
  try {
    reply = await askRedis(url, ['PING']);
  } catch (error) {
    throw new SetupError(`The Redis of REDIS_URL cannot be reached: ${error.message || error.code}`);
  }
  if (/^[+]PONG|^-LOADING/.test(reply)) return;
  throw new SetupError(`The Redis of REDIS_URL refused the connection: ${reply.replace(/^-/, '')}`);
}
