/** Limits the memory of a test's processes with a kernel control group, as a pod or a container does. */
import { randomUUID } from 'node:crypto';
import { access, constants, mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface MemoryLimit {
  /** Puts a process, and every process that it starts from now on, under the limit. */
  add(pid: number): Promise<void>;
  /** Counts processes that the kernel killed for memory. */
  countKills(): Promise<number>;
  /** Returns the highest usage so far, page cache included, bytes. */
  peakBytes(): Promise<number>;
  /** Removes the limit; all of its processes must have ended. */
  close(): Promise<void>;
}

/** Files of the two versions of Linux control groups. */
const versions = [
  {
    root: '/sys/fs/cgroup/memory',
    marker: 'memory.limit_in_bytes',
    limits: ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'],
    peak: 'memory.max_usage_in_bytes',
    kills: 'memory.oom_control',
  },
  {
    root: '/sys/fs/cgroup',
    marker: 'memory.max',
    limits: ['memory.max'],
    peak: 'memory.peak',
    kills: 'memory.events',
  },
] as const;

/** Creates a limit, or returns undefined where this machine allows no control groups. */
export async function limitMemory(bytes: number): Promise<MemoryLimit | undefined> {
  for (const { root, marker, limits, peak, kills } of versions) {
    const directory = join(root, `darkroom-${randomUUID()}`);
    if (!(await canWrite(root))) continue;
    await mkdir(directory).catch(() => {});
    if (!(await canWrite(join(directory, marker)))) {
      await rmdir(directory).catch(() => {});
      continue;
    }
    for (const file of limits) await writeFile(join(directory, file), String(bytes));
    return {
      add: (pid) => writeFile(join(directory, 'cgroup.procs'), String(pid)),
      async countKills() {
        const text = await readFile(join(directory, kills), 'utf8');
        return Number(/^oom_kill (?<count>\d+)$/m.exec(text)?.groups?.['count']);
      },
      peakBytes: async () => Number(await readFile(join(directory, peak), 'utf8')),
      close: () => rmdir(directory),
    };
  }
  return undefined;
}

async function canWrite(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  );
}
