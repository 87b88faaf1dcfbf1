/** What processes of this machine have used, as Linux says. */
import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second. */
const ticksPerSecond = 100;

interface ProcessState {
  name: string;
  parent: number;
  cpuSeconds: number;
}

/** undefined when it is gone. */
function stateOf(pid: number): ProcessState | undefined {
  try {
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!;
    const fields = rest!.split(' ').map(Number);
    return { name: name!, parent: fields[1]!, cpuSeconds: (fields[11]! + fields[12]!) / ticksPerSecond };
  } catch {
    return undefined;
  }
}

/** What these have had of a CPU, all threads together. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (stateOf(pid)?.cpuSeconds ?? 0), 0);
}

/** How often a process has written to a socket, a pipe or a file: to somebody who reads it, mostly. */
export function writesOf(pid: number): number {
  return Number(/^syscw: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);
}

/** Processes that this one has started, and those that they have. */
export function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
  const children = all.filter((each) => stateOf(each)?.parent === pid);
  return [...children, ...children.flatMap(childrenOf)];
}

/** The Redis that vitest has started for this run. */
export function redisPid(): number {
  const found = childrenOf(process.ppid).find((pid) => stateOf(pid)?.name.startsWith('redis-server'));
  if (found === undefined) throw new Error('the redis-server of this run is not among the children of vitest');
  return found;
}
