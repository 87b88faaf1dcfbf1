/** The program of docs/in-process.md, run unchanged. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;

it('the program of docs/in-process.md draws two images that share model calls', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-in-process-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const document = await readFile(join(root, 'docs/in-process.md'), 'utf8');
  await writeFile(join(folder, 'draw.mjs'), /```js\n(?<program>.*?)```/s.exec(document)!.groups!['program']!);
  for (const name of ['node_modules', 'models']) await symlink(join(root, name), join(folder, name));

  const { stdout } = await promisify(execFile)(process.execPath, ['draw.mjs'], { cwd: folder });

  const calls = stdout.match(/one model call for \d images/g)!;
  expect(calls.filter((call) => call.includes('2'))).toHaveLength(6);
  expect(calls).toHaveLength(12);
  expect(stdout).toContain('apple: step 12 of 12');
  for (const name of ['apple', 'fox']) {
    const file = await readFile(join(folder, `${name}.png`));
    expect(file.subarray(1, 4).toString()).toBe('PNG');
  }
});
