/** The redis-server of a run, with its append-only file on a separate disk (tmpfs) if mounting is allowed. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startRedisServer, type RedisServer } from '@darkroom/testing/processes';

export interface ChaosRedis {
  /** Direct URL, without a proxy. */
  url: string;
  /** Port of a single server; undefined with failover, where processes connect without proxies. */
  port: number | undefined;
  /** True if `fill` is supported: it needs a separate mount, and so root. */
  readonly hasDisk: boolean;
  /** Number of restarts. */
  readonly restarts: number;
  /**
   * Ends the server, and restarts it after `downMs` (with failover: once a replica is promoted). With `everysec`,
   * SIGKILL also drops writes that may not be synced yet, as in a power cut.
   */
  end(signal: 'SIGKILL' | 'SIGTERM', downMs: number): Promise<void>;
  /** Fills the disk for `forMs`. */
  fill(forMs: number): Promise<void>;
  stop(): Promise<void>;
  /** Kills the server without waiting, when the run itself exits. */
  killNow(): void;
}

export type Fsync = 'always' | 'everysec';

const diskBytes = 512 * 2 ** 20;
const sampleMs = 100;
/** Time in which a server is restarted after a fault, ms. */
const startMs = 1000;
/** Age of writes that `everysec` may not have synced, ms. */
const unsyncedMs = 1000;

export async function startRedis(appendfsync: Fsync, onCrash: (how: string) => void): Promise<ChaosRedis> {
  const disk = mkdtempSync(join(tmpdir(), 'darkroom-chaos-'));
  const mount = (options: string): boolean =>
    spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk], { stdio: 'ignore' }).status === 0;
  const hasDisk = mount(`size=${diskBytes}`);
  const removeDisk = (): void => {
    // Lazy unmount: a server that is being killed may still use the disk.
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
  // Restarts the server after any exit, as a service manager would.
  const supervision = (async () => {
    for (;;) {
      await exited(server);
      if (isStopped) return;
      if (!isExpected) onCrash(server.process.signalCode ?? `exit ${server.process.exitCode}`);
      await delay(downMs);
      restarts += 1;
      // The server does not start on a full disk.
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
      // On a full disk the server exits, and cannot restart.
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
      await supervision;
      removeDisk();
    },
    killNow() {
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

/** Recent sizes of the append-only files. */
class AppendedSizes {
  readonly #directory: string;
  readonly #samples: { atMs: number; sizes: Map<string, number> }[] = [];
  readonly #timer = setInterval(() => this.#sample(), sampleMs);

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Truncates the files to their sizes `agoMs` ago, except newer files: those come from a rewrite, which syncs. */
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
      // A rewrite deleted a file meanwhile.
      return new Map();
    }
  }
}
