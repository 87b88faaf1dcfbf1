/** The package @darkroom/server, packed and installed by npm in an empty directory outside of the checkout. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient } from '@darkroom/client';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { postJson } from '../e2e/client.ts';

const root = new URL('../../', import.meta.url).pathname;
const run = promisify(execFile);
const installMs = 300_000;

let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'dr-installed-'));
  await run(process.execPath, ['tools/pack-server.mjs'], { cwd: root });
  const packed = await run('npm', ['pack', './.darkroom/package', '--json', '--pack-destination', project], {
    cwd: root,
  });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  // docs/install.md explains --ignore-scripts.
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  await run('npm', ['install', ...flags, `./${filename}`], { cwd: project });
}, installMs);

afterAll(() => rm(project, { recursive: true, force: true }));

/** Runs `npx darkroom` to its end. Returns its standard output. */
async function runDarkroom(...flags: string[]): Promise<string> {
  return (await run('npx', ['darkroom', ...flags], { cwd: project })).stdout;
}

/** Starts `npx darkroom` and resolves once it serves. */
async function startDarkroom(): Promise<{ npx: ChildProcess; url: string; output: () => string }> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', NUM_THREADS: '1' };
  const npx = spawn('npx', ['darkroom'], { cwd: project, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [npx.stdout, npx.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  onTestFinished(() => void npx.kill('SIGTERM'));
  await expect.poll(() => output, { timeout: 120_000 }).toMatch(/running at (http:\S+)/);
  return { npx, url: /running at (http:\S+)/.exec(output)![1]!, output: () => output };
}

it('contains built code, Lua scripts and models, without TypeScript, and installs no compiler', async () => {
  const modules = join(project, 'node_modules');
  const files = await readdir(join(modules, '@darkroom/server'), { recursive: true });
  expect(files.filter((file) => /\.tsx?$|\.map$|\.test\.|tsbuildinfo/.test(file))).toEqual([]);
  expect(files.filter((file) => /^models\/[^/]+$/.test(file)).toSorted()).toEqual([
    'models/emoji-reader',
    'models/emoji-sd',
    'models/emoji-writer',
    'models/emoji-writer-diffusion',
  ]);
  expect((await readdir(modules)).filter((name) => /typescript|vite/.test(name))).toEqual([]);
});

it('prints its version and its settings', async () => {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  expect(await runDarkroom('--version')).toBe(`${version}\n`);
  expect(await runDarkroom('--help')).toMatch(/^npx darkroom \[flags\]\n[^]*--redis-url, REDIS_URL/);
});

it('draws an image, writes a text by a schema, and exits with 0 on SIGINT', { timeout: 300_000 }, async () => {
  const { npx, url, output } = await startDarkroom();
  const page = await fetch(`${url}/client.html`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<title>')]);

  const client = createClient({ baseUrl: url });
  const drawn = await client.submit({ prompt: 'a red apple on a white background', num_inference_steps: 4 });
  const { images } = await client.wait<'image'>(drawn.request_id);
  const image = await fetch(new URL(images[0]!.url, url));
  expect([...new Uint8Array(await image.arrayBuffer()).subarray(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);

  // The grammar of a schema needs WebAssembly from src/.
  const schema = { type: 'object', properties: { dish: { enum: ['cake'] } }, required: ['dish'] };
  const response = await postJson(`${url}/v1/chat/completions`, {
    model: 'emoji-writer',
    messages: [{ role: 'user', content: 'something sweet for a birthday party' }],
    response_format: { type: 'json_schema', json_schema: { name: 'dish', schema } },
  });
  const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
  expect(JSON.parse(choices[0]!.message.content)).toMatchObject({ dish: 'cake' });

  // The state is in the current directory.
  const lock = join(project, '.darkroom/start.lock');
  const { pid } = JSON.parse(await readFile(lock, 'utf8')) as { pid: number };
  expect(existsSync(join(project, '.darkroom/redis/redis.conf'))).toBe(true);
  // Closes once no process of the system holds its standard output.
  const closed = once(npx, 'close');
  process.kill(pid, 'SIGINT');
  expect(await closed).toEqual([0, null]);
  const stopped = output().split('"msg":"stopped"').length - 1;
  expect(stopped).toBe(5);
  expect(output().trimEnd().split('\n').at(-1)).toBe('darkroom: stopped');
  expect(existsSync(lock)).toBe(false);
});
