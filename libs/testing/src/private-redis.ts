/** A redis-server of the tests' own, on a Unix socket in a temporary directory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface PrivateRedis {
  /** `unix:///…/redis.sock`, as `REDIS_URL` takes it. */
  url: string;
  process: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a redis-server of its own and resolves once it accepts connections. */
export async function startPrivateRedis(extraArguments: readonly string[] = []): Promise<PrivateRedis> {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-redis-'));
  const socket = join(directory, 'redis.sock');
  const server = spawn(
    'redis-server',
    ['--port', '0', '--unixsocket', socket, '--save', '', '--appendonly', 'no', '--dir', directory, ...extraArguments],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  for await (const line of createInterface({ input: server.stdout })) if (/ready to accept/i.test(line)) break;
  server.stdout.resume();
  return {
    url: `unix://${socket}`,
    process: server,
    async stop() {
      if (server.exitCode === null && server.signalCode === null) {
        server.kill('SIGTERM');
        await once(server, 'exit');
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
