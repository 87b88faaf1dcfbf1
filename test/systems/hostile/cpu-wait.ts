/** CPU contention: how much slower a process runs because other processes use its cores. */
import { readFile } from 'node:fs/promises';

export interface CpuWait {
  /** Time on a core, ns. */
  runNs: number;
  /** Time runnable without a core, ns. */
  waitNs: number;
}

/** Reads the kernel's scheduler statistics for the main thread of a process. */
export async function readCpuWait(pid: number): Promise<CpuWait> {
  const [runNs = 0, waitNs = 0] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).split(' ').map(Number);
  return { runNs, waitNs };
}

/** Returns the factor by which contention slowed the process between the two readings; 1 on free cores. */
export function slownessSince(before: CpuWait, after: CpuWait): number {
  const runNs = after.runNs - before.runNs;
  return (runNs + after.waitNs - before.waitNs) / Math.max(runNs, 1);
}
