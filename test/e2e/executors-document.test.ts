/** The code and commands of docs/executors.md, run unchanged: the module behind a whole system, and its test suite. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ended, poll, stream, submit } from './client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from './system.ts';

const root = new URL('../../', import.meta.url).pathname;
const bin = join(root, 'node_modules/.bin');

let system: System;
/** A folder in place of a checkout: the packages and the files that the page describes. */
let folder: string;
let document: string;

beforeAll(async () => {
  document = await readFile(join(root, 'docs/executors.md'), 'utf8');
  folder = await mkdtemp(join(tmpdir(), 'darkroom-executors-'));
  await mkdir(join(folder, 'executors'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const [module, test] = programs('js');
  await writeFile(join(folder, 'executors/parrot.mjs'), module!);
  await writeFile(join(folder, 'executors/parrot.test.mjs'), test!);
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  const [, setting] = /EXECUTOR=\.(\/executors\/parrot\.mjs) node apps\/worker/.exec(programs('sh')[0]!)!;
  await system.start('worker', { EXECUTOR: `${folder}${setting}` });
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

async function run(command: string, args: readonly string[], cwd = folder): Promise<string> {
  const env = { PATH: process.env['PATH'] };
  return (await promisify(execFile)(command, [...args], { cwd, env })).stdout;
}

const body = { model: 'parrot', prompt: 'polly wants a cracker' };

it('the module of docs/executors.md has at most 40 lines and type-checks', async () => {
  expect(programs('js')[0]!.split('\n').length - 1).toBeLessThanOrEqual(40);
  const options = ['--noEmit', '--checkJs', '--strict', '--skipLibCheck', '--target', 'es2023', '--module', 'nodenext'];
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules/@types')];
  await run(join(bin, 'tsc'), [...options, ...types, 'executors/parrot.mjs']);
});

it('answers the chat request of the page', async () => {
  const command = programs('sh').find((text) => text.startsWith('curl'))!;
  const answer = JSON.parse(await run('sh', ['-c', command.replace('http://127.0.0.1:8080', system.url)])) as object;
  expect(answer).toMatchObject({
    model: 'parrot',
    choices: [{ message: { content: 'wants polly cracker a' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 4, completion_tokens: 4 },
  });
});

it('streams text deltas, and returns the result', async () => {
  const id = await submit(system.url, { ...body, n: 2, seed: 1, max_tokens: 3 });
  const texts = ['', ''];
  const isAppended: boolean[] = [];
  for (const { event, data } of await stream(system.url, id)) {
    if (event !== 'delta') continue;
    const { index, offset, text } = JSON.parse(data) as { index: number; offset: number; text: string };
    isAppended.push(offset === texts[index]!.length);
    texts[index] += text;
  }
  expect(new Set(isAppended)).toEqual(new Set([true]));
  expect(texts).toEqual(['wants polly cracker', 'a wants polly']);
  expect(await poll(system.url, id)).toMatchObject({
    status: 'succeeded',
    texts: texts.map((text, index) => ({ index, text })),
    finish_reasons: ['length', 'length'],
    usage: { prompt_tokens: 4, completion_tokens: 6 },
  });
});

it('lists its model card, and fails a request that the executor refuses', async () => {
  const { data } = (await (await fetch(`${system.url}/v1/models`)).json()) as { data: object[] };
  expect(data).toMatchObject([{ id: 'parrot', owned_by: 'me', kind: 'text', max_model_len: 4096 }]);
  const id = await submit(system.url, { ...body, prompt: ' ' });
  expect(await ended(system.url, id)).toBe('failed');
  expect(await poll(system.url, id)).toMatchObject({
    error: { code: 'invalid_request', message: 'prompt: has no words' },
  });
});

it('cancels a running request and gives its slot to the next', async () => {
  const long = await Promise.all(Array.from({ length: 4 }, () => submit(system.url, { ...body, max_tokens: 4000 })));
  await Promise.all(long.map((id) => stream(system.url, id, { until: ({ event }) => event === 'delta' })));
  const next = await submit(system.url, body);
  expect((await poll(system.url, next)).status).toBe('queued');
  expect((await fetch(`${system.url}/v1/predict/${long[0]!}`, { method: 'DELETE' })).status).toBe(202);
  expect(await ended(system.url, long[0]!)).toBe('canceled');
  expect(await ended(system.url, next)).toBe('succeeded');
  await Promise.all(long.map((id) => fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' })));
  await Promise.all(long.map((id) => ended(system.url, id)));
});

it("passes the conformance suite with the page's command", async () => {
  const command = programs('sh').find((text) => text.startsWith('npx vitest'))!;
  const args = command.trim().split(' ').slice(2);
  const printed = await run(join(bin, 'vitest'), args);
  // oxlint-disable-next-line no-control-regex
  expect(printed.replaceAll(/\u001b\[\d+m/g, '')).toMatch(/Tests +1\d passed \(1\d\)/);
});
