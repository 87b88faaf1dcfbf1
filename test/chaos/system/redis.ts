/** The one redis-server of a run, with its append-only file on a disk of its own where that can be had. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startRedisServer, type RedisServer } from '@darkroom/testing/processes';

export interface ChaosRedis {
  /** Past all proxies. */
  url: string;
  /** Of the one that there is; none if others may take its place, so that there is no way to it that could fail. */
  port: number | undefined;
  /** Whether `fill` can be called: it takes a mount of its own, and so root. */
  readonly hasDisk: boolean;
  /** How often it was found dead and started again. */
  readonly restarts: number;
  /** Ends it, and starts it again after so long, when another took its place if there are others. With `everysec` what the disk may not have yet goes with it, as in a power cut. */
  end(signal: 'SIGKILL' | 'SIGTERM', downMs: number): Promise<void>;
  /** No room on its disk for so long. */
  fill(forMs: number): Promise<void>;
  stop(): Promise<void>;
  /** As `stop`, at once. */
  abandon(): void;
}

export type Fsync = 'always' | 'everysec';

const diskBytes = 512 * 2 ** 20;
const sampleMs = 100;
/** Until what was told to end, or had no room, is surely another process, ms. */
const startMs = 1000;
/** What `everysec` may not have written, ms. */
const unsyncedMs = 1000;

export async function startRedis(appendfsync: Fsync, onCrash: (how: string) => void): Promise<ChaosRedis> {
  const disk = mkdtempSync(join(tmpdir(), 'darkroom-chaos-'));
  const mount = (options: string): boolean =>
    spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'ignore' }).status === 0;
  const hasDisk = mount(`size=${diskBytes}`);
  const removeDisk = (): void => {
    // Lazily: it may be in use by one that is being killed.
    if (hasDisk) spawnSync('umount', ['--lazy', disk], { stdio: 'ignore' });
    rmSync(disk, { recursive: true, force: true });
  };
  const port = await freePort();
  const server = await startRedisServer({
    parent: disk,
    args: () => ['--port', `${port}`, '--bind', '127.0.0.1', '--appendonly', 'yes', '--appendfsync', appendfsync],
  });
  const sizes = appendfsync === 'everysec' ? new AppendedSizes(join(server.directory, 'appendonlydir')) : undefined;
  let restarts = 0;
  let isStopped = false;
  let downMs = 0;
  let isExpected = false;
  // One that ends for whatever reason is started again, as a service manager would.
  const keeping = (async () => {
    for (;;) {
      await exited(server);
      if (isStopped) return;
      if (!isExpected) onCrash(server.process.signalCode ?? `exit ${server.process.exitCode}`);
      await delay(downMs);
      restarts += 1;
      // On a full disk it does not start.
      await server.restart().catch(() => delay(500));
    }
  })();
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    hasDisk,
    get restarts() {
      return restarts;
    },
    async end(signal, forMs) {
      downMs = forMs;
      isExpected = true;
      server.process.kill(signal);
      await exited(server);
      if (signal === 'SIGKILL') sizes?.cutBack(unsyncedMs);
      await delay(forMs + startMs);
      isExpected = false;
    },
    async fill(forMs) {
      const used = Number(spawnSync('df', ['--output=used', '-B1', disk], { encoding: 'utf8' }).stdout.split('\n')[1]);
      const resize = (bytes: number): void =>
        void spawnSync('mount', ['-o', `remount,size=${bytes}`, disk], { stdio: 'ignore' });
      // Without room it ends, and does not start.
      isExpected = true;
      resize(used + 4096);
      await delay(forMs);
      resize(diskBytes);
      await delay(startMs);
      isExpected = false;
    },
    async stop() {
      isStopped = true;
      sizes?.stop();
      await server.stop();
      await keeping;
      removeDisk();
    },
    abandon() {
      isStopped = true;
      server.process.kill('SIGKILL');
      removeDisk();
    },
  };
}

async function exited({ process: child }: RedisServer): Promise<void> {
  if (child.exitCode === null && child.signalCode === null)
    await new Promise<void>((resolve) => void child.once('exit', () => resolve()));
}

/** How long the append-only files were lately. */
class AppendedSizes {
  readonly #directory: string;
  readonly #samples: { atMs: number; sizes: Map<string, number> }[] = [];
  readonly #timer = setInterval(() => this.#sample(), sampleMs);

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** To what they were so long ago. A file that is younger was begun by a rewrite, which syncs, and is left alone. */
  cutBack(agoMs: number): void {
    const then = this.#samples.findLast(({ atMs }) => atMs <= Date.now() - agoMs);
    for (const [file, size] of then?.sizes ?? [])
      if (file.endsWith('.incr.aof') && (this.#sizes().get(file) ?? 0) > size) truncateSync(file, size);
    this.#samples.length = 0;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #sample(): void {
    this.#samples.push({ atMs: Date.now(), sizes: this.#sizes() });
    if (this.#samples.length > (3 * unsyncedMs) / sampleMs) this.#samples.shift();
  }

  #sizes(): Map<string, number> {
    try {
      const files = readdirSync(this.#directory).map((name) => join(this.#directory, name));
      return new Map(files.map((file) => [file, statSync(file).size]));
    } catch {
      // A file of before a rewrite has gone meanwhile.
      return new Map();
    }
  }
}
