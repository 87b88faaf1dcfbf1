/** Tests built code: `npm run build` first. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';

const fixture = resolve(import.meta.dirname, '__fixtures__/blocked-child.mjs');
const unstarted = resolve(import.meta.dirname, '__fixtures__/unstarted-child.mjs');

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('kills a blocked child process when its parent is killed', async () => {
  const parent = spawn(process.execPath, [fixture], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface({ input: parent.stdout }), 'line')) as [string];
  const pid = Number(line);
  onTestFinished(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')));
  expect(isAlive(pid)).toBe(true);
  parent.kill('SIGKILL');
  await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
});

it('reports how it ended if no process could be started, for want of file descriptors', () => {
  const limited = ['-c', 'ulimit -n 100; exec "$0" "$1"', process.execPath, unstarted];
  const { stdout, stderr } = spawnSync('/bin/sh', limited, { encoding: 'utf8' });
  expect([stdout, stderr]).toEqual([expect.stringMatching(/^could not be started: spawn \S+ EMFILE\n$/), '']);
});
