/** Python with the peers in it, in a directory of its own: nothing is installed into the machine's. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const requirements = new URL('requirements.txt', import.meta.url).pathname;
const pinned = readFileSync(requirements, 'utf8');

/** As requirements.txt has it. */
export function versionOf(name: string): string {
  const line = pinned.split('\n').find((each) => each.startsWith(`${name}==`));
  if (line === undefined) throw new Error(`${requirements} does not name ${name}`);
  return line.slice(name.length + 2);
}

const named = ['litserve', 'bentoml', 'ray'].map((name) => `${name}-${versionOf(name)}`);
const directory = new URL(`../../.darkroom/peers-${named.join('-')}/`, import.meta.url).pathname;

/** Path of a program of the environment. */
export function pythonProgram(name: 'python' | 'bentoml'): string {
  return join(directory, 'bin', name);
}

/** In place of the user's home, where some of them keep things. */
export const pythonHome = join(directory, 'home');

/** Makes the environment where it is not there, in two minutes. Needs `python3` with venv, and PyPI the first time. */
export function providePython(): void {
  const complete = join(directory, 'complete.txt');
  if (existsSync(complete) && readFileSync(complete, 'utf8') === pinned) return;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(pythonHome, { recursive: true });
  execFileSync('python3', ['-m', 'venv', directory], { stdio: 'inherit' });
  // The list is whole. BentoML 1.4.40 asks for a certifi of the day after the newest one that there was on PyPI when it was made.
  const words = ['--quiet', '--disable-pip-version-check', '--no-deps', '--requirement', requirements];
  execFileSync(pythonProgram('python'), ['-m', 'pip', 'install', ...words], { stdio: 'inherit' });
  writeFileSync(complete, pinned);
}
