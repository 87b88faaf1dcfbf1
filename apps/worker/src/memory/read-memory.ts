/** What an engine's process takes of a memory. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Of the machine's: its share of every page (PSS), bytes. undefined where the kernel does not say it. */
export async function readProcessMemory(pid: number): Promise<number | undefined> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '');
  const kilobytes = /^Pss: +(\d+) kB$/m.exec(rollup)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
}

/** Of NVIDIA's GPUs, all together, bytes. undefined where the driver does not show processes, as in many containers. */
export async function readGpuMemory(pid: number, command = 'nvidia-smi'): Promise<number | undefined> {
  const query = ['--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits'];
  const { stdout } = await promisify(execFile)(command, query, { timeout: 5000 }).catch(() => ({ stdout: '' }));
  // One line for each GPU that it uses: `1234, 512`, in MiB.
  const own = stdout.split('\n').flatMap((line) => {
    const [process, mebibytes] = line.split(',').map((text) => Number.parseInt(text, 10));
    return process === pid && Number.isFinite(mebibytes) ? [mebibytes!] : [];
  });
  return own.length > 0 ? own.reduce((sum, size) => sum + size, 0) * 2 ** 20 : undefined;
}
