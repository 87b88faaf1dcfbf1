/** Virtual environment with the Python peers, in its own directory. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const requirements = new URL('requirements.txt', import.meta.url).pathname;
const pinned = readFileSync(requirements, 'utf8');

/** Returns the version of a package in requirements.txt. */
export function versionOf(name: string): string {
  const line = pinned.split('\n').find((each) => each.startsWith(`${name}==`));
  if (line === undefined) throw new Error(`${requirements} does not name ${name}`);
  return line.slice(name.length + 2);
}

const named = ['litserve', 'bentoml', 'ray'].map((name) => `${name}-${versionOf(name)}`);
const directory = new URL(`../../.darkroom/peers-${named.join('-')}/`, import.meta.url).pathname;

/** Returns the path of a program in the environment. */
export function pythonProgram(name: 'python' | 'bentoml'): string {
  return join(directory, 'bin', name);
}

/** Home directory for the peers, some of which store files there. */
export const pythonHome = join(directory, 'home');

/** Creates the environment if it does not exist (two minutes). Needs `python3` with venv, and PyPI the first time. */
export function providePython(): void {
  const complete = join(directory, 'complete.txt');
  if (existsSync(complete) && readFileSync(complete, 'utf8') === pinned) return;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(pythonHome, { recursive: true });
  execFileSync('python3', ['-m', 'venv', directory], { stdio: 'inherit' });
  // --no-deps: the list is complete, and BentoML 1.4.40 requires a certifi newer than any on PyPI at its release.
  const words = ['--quiet', '--disable-pip-version-check', '--no-deps', '--requirement', requirements];
  execFileSync(pythonProgram('python'), ['-m', 'pip', 'install', ...words], { stdio: 'inherit' });
  writeFileSync(complete, pinned);
}
