/** Installs a fixed version of OpenAI's Python SDK under .darkroom, apart from the system's packages, and runs it. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const version = '3.54.0';
const directory = new URL(`../../.darkroom/openai-python-${version}/`, import.meta.url).pathname;

/** Installs the SDK if it is missing. Needs `python3` with pip; the first run downloads from PyPI. */
export async function installOpenaiPython(): Promise<void> {
  if (existsSync(join(directory, `openai-${version}.dist-info`))) return;
  const target = ['--target', directory, `openai==${version}`];
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore'];
  await promisify(execFile)('python3', ['-m', 'pip', 'install', ...quiet, ...target]);
}

/** Runs a Python program whose SDK calls the API at `url`. Returns the program's stdout. */
export async function runOpenaiPython(program: string, url: string): Promise<string> {
  const { stdout } = await promisify(execFile)('python3', ['-c', program], {
    env: {
      PATH: process.env['PATH'],
      PYTHONPATH: directory,
      PYTHONDONTWRITEBYTECODE: '1',
      OPENAI_BASE_URL: `${url}/v1`,
      OPENAI_API_KEY: 'none',
    },
  });
  return stdout;
}
