/** A separate redis-server on a Unix socket in a temporary directory. */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { startRedisServer } from './redis-server.ts';

export interface PrivateRedis {
  /** `unix:///…/redis.sock`, valid as `REDIS_URL`. */
  url: string;
  readonly process: ChildProcess;
  /** Restarts it in its directory after it was killed. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a redis-server and resolves once it accepts connections. */
export async function startPrivateRedis(
  extraArguments: readonly string[] = [],
  program = 'redis-server',
): Promise<PrivateRedis> {
  const server = await startRedisServer({
    program,
    args: (directory) => ['--port', '0', '--unixsocket', join(directory, 'redis.sock'), ...extraArguments],
  });
  return {
    url: `unix://${join(server.directory, 'redis.sock')}`,
    get process() {
      return server.process;
    },
    restart: () => server.restart(),
    stop: () => server.stop(),
  };
}
