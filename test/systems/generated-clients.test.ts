/** Clients that common generators make from /openapi.json, against a running system. */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';
import { installPythonPackages } from './python-packages.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;
const programs = join(root, 'test/systems/generated-clients');

let system: System;
/** The directory of the Python generator. */
let python = '';
beforeAll(async () => {
  // PyPI may be slow.
  python = await installPythonPackages('openapi-python-client==0.29.1');
  system = await startSystem();
}, 600_000);
afterAll(() => stopSystem(system));

/** Creates a directory with the document, below `parent`, whose packages programs in it can import. */
async function createDirectory(parent: string): Promise<string> {
  await mkdir(parent, { recursive: true });
  const directory = await mkdtemp(join(parent, 'darkroom-client-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'openapi.json'), await (await fetch(`${system.url}/openapi.json`)).text());
  return directory;
}

const printed = ['emoji-sd image', 'succeeded image/png'];

it(
  'openapi-typescript generates a client that compiles and works with openapi-fetch',
  { timeout: 120_000 },
  async () => {
    const directory = await createDirectory(join(root, '.darkroom'));
    const require = createRequire(join(root, 'apps/api/package.json'));
    const generate = join(require.resolve('openapi-typescript/package.json'), '../bin/cli.js');
    await run(process.execPath, [generate, 'openapi.json', '-o', 'schema.d.ts'], { cwd: directory });
    await copyFile(join(programs, 'client.mts.txt'), join(directory, 'client.mts'));
    const options = [
      '--ignoreConfig',
      '--strict',
      '--module',
      'nodenext',
      '--target',
      'es2023',
      '--types',
      'node',
      'client.mts',
    ];
    await run(join(root, 'node_modules/.bin/tsc'), options, { cwd: directory });
    const { stdout } = await run(process.execPath, ['client.mjs', system.url], { cwd: directory });
    expect(stdout.trim().split('\n')).toEqual([...printed, 'image/png', 'num_inference_steps']);
  },
);

it('openapi-python-client generates a client without warnings, which works', { timeout: 120_000 }, async () => {
  const directory = await createDirectory(tmpdir());
  const env = { PATH: process.env['PATH'], PYTHONPATH: `${python}:${directory}`, PYTHONDONTWRITEBYTECODE: '1' };
  const config = join(programs, 'openapi-python-client.yml');
  const generate = ['generate', '--path', 'openapi.json', '--meta', 'none', '--config', config, '--fail-on-warning'];
  const options = ['--output-path', join(directory, 'darkroom_api')];
  await run('python3', ['-m', 'openapi_python_client', ...generate, ...options], { cwd: directory, env });
  const { stdout } = await run('python3', [join(programs, 'client.py'), system.url], { cwd: directory, env });
  expect(stdout.trim().split('\n')).toEqual([...printed, 'image/png PNG', 'num_inference_steps']);
});
