/** The code and commands of docs/python-engines.md, run unchanged. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ended, postJson } from './client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from './system.ts';

const root = new URL('../../', import.meta.url).pathname;
let system: System;
let folder: string;
let document: string;

beforeAll(async () => {
  document = await readFile(join(root, 'docs/python-engines.md'), 'utf8');
  folder = await mkdtemp(join(tmpdir(), 'darkroom-engines-'));
  await mkdir(join(folder, 'engines'));
  await writeFile(join(folder, 'engines/stripes.py'), programs('python')[0]!);
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  const [, path] = /EXECUTOR=python MODULE=\.(\S+) node apps\/worker/.exec(programs('sh')[0]!)!;
  await system.start('worker', { EXECUTOR: 'python', MODULE: `${folder}${path}` });
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await rm(folder, { recursive: true });
});

function programs(language: string): string[] {
  return [...document.matchAll(new RegExp(`\`\`\`${language}\\n(?<code>.*?)\`\`\``, 'gs'))].map(
    ({ groups }) => groups!['code']!,
  );
}

it('answers the request of the page, and refuses what the engine refuses', async () => {
  const command = programs('sh').find((text) => text.startsWith('curl'))!;
  const run = command.replace('http://127.0.0.1:8080', system.url);
  const { stdout } = await promisify(execFile)('sh', ['-c', run]);
  expect(await ended(system.url, (JSON.parse(stdout) as { request_id: string }).request_id)).toBe('succeeded');
  const refused = await postJson(`${system.url}/v1/predict`, { model: 'stripes', prompt: 'dots' });
  const { request_id: id } = (await refused.json()) as { request_id: string };
  expect(await ended(system.url, id)).toBe('failed');
});

it('the engine without steps of the page makes several outputs in one call', async () => {
  const fixture = `${programs('python')[2]!}
def paint(prompt, seed):
    return bytes([seed, 0, 0]) * (64 * 64)

def create_engine(model):
    return Painter()
`;
  await writeFile(join(folder, 'engines/painter.py'), fixture);
  await system.start('worker', { EXECUTOR: 'python', MODULE: join(folder, 'engines/painter.py') });
  const body = { model: 'painter', prompt: 'red', size: '64x64', n: 3, seed: 1 };
  const answer = await postJson(`${system.url}/v1/predict`, body);
  const { request_id: id } = (await answer.json()) as { request_id: string };
  expect(await ended(system.url, id)).toBe('succeeded');
});
