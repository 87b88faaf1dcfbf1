/** The Redis that a test run shares: a container where there is Docker, a process of this machine otherwise. */
import { spawnSync } from 'node:child_process';
import { GenericContainer, Wait } from 'testcontainers';
import { startPrivateRedis } from './private-redis.ts';

export interface TestRedis {
  /** As `REDIS_URL` takes it. */
  url: string;
  stop(): Promise<void>;
}

/** The image that docker-compose.yml runs. */
const image = 'redis:8';

/** Starts one that keeps nothing on disk, and resolves once it accepts connections. */
export function startTestRedis(): Promise<TestRedis> {
  return hasDockerImage() ? startRedisContainer() : startPrivateRedis();
}

/** An engine that answers and has the image: a test run is no time to find out how fast the network is. */
function hasDockerImage(): boolean {
  return spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore', timeout: 10_000 }).status === 0;
}

async function startRedisContainer(): Promise<TestRedis> {
  // testcontainers' reaper is one more image to fetch, run with rights over the engine; the run's teardown stops ours.
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
