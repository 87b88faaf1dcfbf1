/** The Redis of a test run: a container if Docker is available, otherwise a local process. */
import { spawnSync } from 'node:child_process';
import { GenericContainer, Wait } from 'testcontainers';
import { startPrivateRedis } from './private-redis.ts';
import { freePort } from './redis-server.ts';

export interface TestRedis {
  /** Valid as `REDIS_URL`. */
  url: string;
  stop(): Promise<void>;
}

/** The same image as in docker-compose.yml. */
const image = 'redis:8';

/** Starts one without persistence; resolves once it accepts connections. */
export async function startTestRedis(): Promise<TestRedis> {
  if (hasDockerImage()) return startRedisContainer();
  // With a TCP port: URLs of sockets cannot contain a user and a password.
  return startPrivateRedis(['--port', `${await freePort()}`, '--bind', '127.0.0.1']);
}

/** Returns true if Docker is running and has the image; a test run must not wait for a download. */
function hasDockerImage(): boolean {
  return spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore', timeout: 10_000 }).status === 0;
}

async function startRedisContainer(): Promise<TestRedis> {
  // No testcontainers reaper, which needs another image and rights over Docker; the run's teardown stops the container.
  process.env['TESTCONTAINERS_RYUK_DISABLED'] ??= 'true';
  const container = await new GenericContainer(image)
    .withCommand(['redis-server', '--bind', '0.0.0.0', '--protected-mode', 'no', '--save', '', '--appendonly', 'no'])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(/ready to accept/i))
    .start();
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => void (await container.stop()),
  };
}
