/** Runs a fixed version of OpenAI's Python SDK. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { installPythonPackages } from './python-packages.ts';

let directory = '';

/** Installs the SDK if it is missing. */
export async function installOpenaiPython(): Promise<void> {
  directory = await installPythonPackages('openai==3.54.0');
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
