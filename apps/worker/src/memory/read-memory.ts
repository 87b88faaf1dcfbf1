/** Measures the memory of an engine process. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Returns the proportional set size (PSS) of a process, bytes; undefined where the kernel does not report it. */
export async function readProcessMemory(pid: number): Promise<number | undefined> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const kilobytes = /^Pss: +(\d+) kB$/m.exec(rollup)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}

/**
 * Returns a process's memory on all NVIDIA GPUs, bytes; undefined where the driver hides processes, as in many
 * containers.
 */
export async function readGpuMemory(pid: number, command = 'nvidia-smi'): Promise<number | undefined> {
  const query = ['--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'];
  const { stdout } = await promisify(execFile)(command, query, { timeout: 5000 }).catch(() => ({ stdout: '' }));
  // One line per GPU and process: `1234, 512`, in MiB.
  const own = stdout.split('\n').flatMap((line) => {
    const [process, mebibytes = NaN] = line.split(',').map((text) => Number.parseInt(text, 10));
    return process === pid && Number.isFinite(mebibytes) ? [mebibytes] : [];
  });
  return own.length > 0 ? own.reduce((sum, size) => sum + size, 0) * 2 ** 20 : undefined;
}
