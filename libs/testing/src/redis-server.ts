/** One redis-server process with its own temporary directory. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export interface RedisServer {
  readonly process: ChildProcess;
  /** Its working directory, removed by `stop`. */
  directory: string;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
  /** Restarts it in the same directory. */
  restart(): Promise<void>;
  /** Ends it, even if it is suspended, and removes its directory. */
  stop(): Promise<void>;
}

export interface StartRedisServerOptions {
  program?: string;
  args: (directory: string) => readonly string[];
  /** Matches the log line that it prints when ready. */
  isReady?: RegExp;
  /** Parent of its directory. */
  parent?: string;
}

const standardArguments = ['--save', '', '--appendonly', 'no'];

/** Starts a server and resolves once it accepts connections. */
export async function startRedisServer({
  program = 'redis-server',
  args,
  isReady = /ready to accept/i,
  parent = tmpdir(),
}: StartRedisServerOptions): Promise<RedisServer> {
  const directory = mkdtempSync(join(parent, 'darkroom-redis-'));
  const start = async (): Promise<ChildProcess> => {
    const given = args(directory);
    // A Sentinel is configured by a file and accepts none of these.
    const all = given.includes('--sentinel') ? given : ['--dir', directory, ...standardArguments, ...given];
    const child = spawn(program, all, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] });
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      if (isReady.test(line)) return drained(child);
      lines.push(line);
    }
    throw new Error(`${program} ended at its start:\n${lines.join('\n')}`);
  };
  let child = await start();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    // A suspended process handles SIGTERM only after SIGCONT.
    child.kill('SIGCONT');
    await exited;
  };
  return {
    get process() {
      return child;
    },
    directory,
    kill: () => end('SIGKILL'),
    async restart() {
      child = await start();
    },
    async stop() {
      await end('SIGTERM');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function drained(child: ChildProcess): ChildProcess {
  child.stdout?.resume();
  return child;
}

/** redis-server, and valkey-server if it is installed. */
export const redisPrograms: readonly string[] = ['redis-server', 'valkey-server'].filter(
  (program) => program === 'redis-server' || spawnSync(program, ['--version']).status === 0,
);

/** Range of ports below those that Linux and macOS assign automatically, which other tests could get meanwhile. */
const lowestPort = 15_000;
const portsEnd = 32_000;

/** Returns TCP ports of the loopback interface that are currently free. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenSomewhere));
  return Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      server.close();
      await once(server, 'close');
      if (address === null || typeof address === 'string') throw new Error('a server without a port');
      return address.port;
    }),
  );
}

async function listenSomewhere(): Promise<Server> {
  for (;;) {
    const server = createServer().listen(randomInt(lowestPort, portsEnd), '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    if (isFree) return server;
  }
}

/** Returns one free port. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}
