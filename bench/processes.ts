/** Resource usage of processes, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Clock ticks per second in /proc/<pid>/stat. */
const ticksPerSecond = 100;

interface ProcessState {
  name: string;
  parent: number;
  cpuSeconds: number;
}

/** Returns the state of a process; undefined if it has ended. */
function stateOf(pid: number): ProcessState | undefined {
  try {
    const [, name, rest] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!;
    const fields = rest!.split(' ').map(Number);
    return { name: name!, parent: fields[1]!, cpuSeconds: (fields[11]! + fields[12]!) / ticksPerSecond };
  } catch {
    return undefined;
  }
}

/** Returns the CPU seconds of processes, over all their threads. */
export function cpuSecondsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + (stateOf(pid)?.cpuSeconds ?? 0), 0);
}

/** Returns the number of write calls of a process, to sockets, pipes and files. */
export function writesOf(pid: number): number {
  return Number(/^syscw: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1] ?? 0);
}

/** Returns the descendants of a process. */
export function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? Number(name) : []));
  const children = all.filter((each) => stateOf(each)?.parent === pid);
  return [...children, ...children.flatMap(childrenOf)];
}

/** Returns the pid of the Redis that vitest has started for this run. */
export function redisPid(): number {
  const found = childrenOf(process.ppid).find((pid) => stateOf(pid)?.name.startsWith('redis-server'));
  if (found === undefined) throw new Error('the redis-server of this run is not among the children of vitest');
  return found;
}
