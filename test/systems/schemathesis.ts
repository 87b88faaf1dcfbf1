/**
 * Schemathesis, the property-based tester for OpenAPI, at a fixed version in a directory under .darkroom, separate from
 * the machine's Python packages.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const version = '4.32.5';
const directory = new URL(`../../.darkroom/schemathesis-${version}/`, import.meta.url).pathname;
const configFile = new URL('schemathesis.toml', import.meta.url).pathname;
const outputLimitBytes = 64 * 1024 * 1024;

/** Installs Schemathesis if missing. Needs `python3` with pip, and PyPI the first time. */
export async function installSchemathesis(): Promise<void> {
  if (existsSync(join(directory, `schemathesis-${version}.dist-info`))) return;
  const target = ['--target', directory, `schemathesis==${version}`];
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore'];
  await promisify(execFile)('python3', ['-m', 'pip', 'install', ...quiet, ...target], { maxBuffer: outputLimitBytes });
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
