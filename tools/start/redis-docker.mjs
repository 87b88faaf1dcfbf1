import { createHash, randomBytes } from 'node:crypto';
import { findProgram, runCommand } from './run-command.mjs';
import { freePort, withUrl, writeRedisSettings } from './redis-settings.mjs';
import { say } from './say.mjs';

const image = 'redis:7-alpine';

/** Returns a private Redis in a container with its data in `directory`, or undefined if Docker does not run. */
export async function dockerRedis({ directory, env }) {
  const docker = findProgram('docker', env);
  if (!docker || !(await runCommand(docker, ['info'], { env, quiet: true }))) return undefined;
  const { port, password, url } = withUrl({ port: await freePort(), password: randomBytes(24).toString('hex') });
  writeRedisSettings({ directory, port: 6379, password, dataDirectory: '/data', bind: '0.0.0.0' });
  const name = `darkroom-redis-${createHash('sha256').update(directory).digest('hex').slice(0, 12)}`;
  say(`redis-server was not found: running ${image} in Docker on port ${port}, data and redis.log in ${directory}`);
  return {
    url,
    command: [docker, ...runArguments({ name, port, directory })],
    // `docker stop` lets a container of a killed launcher save its data.
    prepare: async () => {
      await runCommand(docker, ['stop', name], { env, quiet: true });
      await runCommand(docker, ['rm', '--force', name], { env, quiet: true });
    },
  };
}

function runArguments({ name, port, directory }) {
  const user = process.getuid ? ['--user', `${process.getuid()}:${process.getgid()}`] : [];
  const mounts = ['--publish', `127.0.0.1:${port}:6379`, '--volume', `${directory}:/data`];
  return ['run', '--rm', '--name', name, ...user, ...mounts, image, 'redis-server', '/data/redis.conf'];
}
