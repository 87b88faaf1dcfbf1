/** The programs of docs/drop-in.md and docs/client.md, run unchanged. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { useSharedSystem } from './shared-system.ts';

const root = new URL('../../', import.meta.url).pathname;

const system = useSharedSystem();
let programs: string[];
beforeAll(async () => {
  const text = await readFile(join(root, 'docs/drop-in.md'), 'utf8');
  programs = [...text.matchAll(/```js\n(?<code>.*?)```/gs)].map((match) => match.groups!['code']!);
});

/** Runs a program in a directory that has only the packages. */
async function run(program: string): Promise<{ stdout: string; directory: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'darkroom-drop-in-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
  const code = program.replaceAll('http://127.0.0.1:8080', system.url);
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], {
    cwd: directory,
    env: { PATH: process.env['PATH'] },
  });
  return { stdout, directory };
}

it('docs/drop-in.md: fal by its proxy setting', async () => {
  const { stdout } = await run(programs[0]!);
  expect(stdout).toMatch(/^(?:IN_QUEUE\n|IN_PROGRESS\n)*COMPLETED\nemoji-sd-\w+ http\S+\/images\/0 \d+\n$/);
});

it('docs/drop-in.md: fal by rewriting URLs', async () => {
  const url = (await run(programs[1]!)).stdout.trim();
  expect(await sharp(Buffer.from(await (await fetch(url)).arrayBuffer())).metadata()).toMatchObject({ format: 'png' });
});

it('docs/drop-in.md: Replicate', async () => {
  expect(programs).toHaveLength(3);
  const { stdout, directory } = await run(programs[2]!);
  expect(stdout).toContain('100%|████████████████████| ');
  expect(await sharp(await readFile(join(directory, 'apple.png'))).metadata()).toMatchObject({
    width: 128,
    height: 128,
  });
});

it('docs/client.md: our own client', async () => {
  const [, program] = /```js\n(.*?)```/s.exec(await readFile(join(root, 'docs/client.md'), 'utf8'))!;
  const { stdout, directory } = await run(program!);
  expect(stdout).toMatch(/^emoji-sd-\w+ has 0 before it\nstep \d+ of \d+ /);
  expect(stdout).toMatch(/\nstep 5 of \d+ data:image\/jpeg;base64,/);
  const image = await readFile(join(directory, 'apple-0.png'));
  expect(await sharp(image).metadata()).toMatchObject({ format: 'png', width: 128 });
});
