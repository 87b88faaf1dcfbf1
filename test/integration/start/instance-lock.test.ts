import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startFixture } from './started-process.ts';

function lockFile(): string {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-lock-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  return join(directory, '.darkroom/start.lock');
}

describe('the lock of npm start', () => {
  it('refuses a second start and names the process that holds the lock', async () => {
    const file = lockFile();
    const first = startFixture('lock.mjs', [file]);
    await first.output(/locked/);
    const { code, output } = await startFixture('lock.mjs', [file]).end;
    expect(code).toBe(1);
    expect(output).toContain(`Darkroom already runs from this directory (process ${first.child.pid})`);
  });

  it('is released by a stop and by a kill', async () => {
    const file = lockFile();
    for (const signal of ['SIGTERM', 'SIGKILL', 'SIGTERM'] as const) {
      const holder = startFixture('lock.mjs', [file]);
      await expect(holder.output(/locked/)).resolves.toBeTruthy();
      holder.child.kill(signal);
      await holder.end;
    }
  });

  it.each([
    ['a process id that another process has now', JSON.stringify({ pid: process.pid, startedAt: 'another time' })],
    ['a process that is gone', JSON.stringify({ pid: 2 ** 22 + 1, startedAt: '1' })],
    ['an incomplete line', '{"pid":'],
    ['nothing', ''],
  ])('ignores a stale lock file that contains %s', async (_, content) => {
    const file = lockFile();
    const maker = startFixture('lock.mjs', [file]);
    await maker.output(/locked/);
    maker.child.kill('SIGKILL');
    await maker.end;
    writeFileSync(file, content);
    const holder = startFixture('lock.mjs', [file]);
    await expect(holder.output(/locked/)).resolves.toBeTruthy();
  });
});
