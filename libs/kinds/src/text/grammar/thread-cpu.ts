import { readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';

/** Returns the kernel's id of the calling thread; undefined except on Linux. */
export function kernelThreadId(): number | undefined {
  try {
    return Number(basename(readlinkSync('/proc/thread-self')));
  } catch {
    return undefined;
  }
}

/**
 * Returns the CPU time that a thread of this process has used, in ms; without an id, the time of the full process.
 * Source: the first field of `/proc/<pid>/task/<tid>/schedstat`, in ns.
 */
export function threadCpuMs(id: number | undefined): number {
  if (id !== undefined) {
    try {
      return Number(readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
    } catch {
      // The thread has ended, or the kernel has no such statistics.
    }
  }
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
