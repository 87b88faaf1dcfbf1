/** Runs a fixed version of Schemathesis, the property-based tester for OpenAPI. */
import { spawn } from 'node:child_process';
import { installPythonPackages } from './python-packages.ts';

const configFile = new URL('schemathesis.toml', import.meta.url).pathname;
let directory = '';

/** Installs Schemathesis if it is missing. */
export async function installSchemathesis(): Promise<void> {
  directory = await installPythonPackages('schemathesis==4.32.5');
}

export interface SchemathesisRun {
  exitCode: number;
  /** The readable report. */
  output: string;
}

/** Runs Schemathesis against the OpenAPI document at `url`; its cache files go to `cwd`. */
export async function runSchemathesis(url: string, cwd: string, options: readonly string[]): Promise<SchemathesisRun> {
  const child = spawn(
    'python3',
    ['-m', 'schemathesis.cli', '--config-file', configFile, 'run', url, '--no-color', ...options],
    {
      env: { PATH: process.env['PATH'], PYTHONPATH: directory, PYTHONDONTWRITEBYTECODE: '1', COLUMNS: '160' },
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve(code ?? 1));
  });
  return { exitCode, output };
}
