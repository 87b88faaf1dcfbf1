/** Installs Python packages at fixed versions under .darkroom, apart from the machine's packages. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { promisify } from 'node:util';

const outputLimitBytes = 64 * 1024 * 1024;

/** Runs `pip install`. Needs `python3` with pip. */
export async function runPip(...options: readonly string[]): Promise<void> {
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore'];
  await promisify(execFile)('python3', ['-m', 'pip', 'install', ...quiet, ...options], { maxBuffer: outputLimitBytes });
}

/** Returns a directory, for `PYTHONPATH`, with these packages. The first call downloads them from PyPI. */
export async function installPythonPackages(...requirements: readonly string[]): Promise<string> {
  const name = requirements.join('+').replaceAll('==', '-');
  const directory = new URL(`../../.darkroom/python/${name}/`, import.meta.url).pathname;
  if (existsSync(directory)) return directory;
  const incomplete = `${directory.slice(0, -1)}.incomplete`;
  await rm(incomplete, { recursive: true, force: true });
  await runPip('--target', incomplete, ...requirements);
  await rename(incomplete, directory);
  return directory;
}
