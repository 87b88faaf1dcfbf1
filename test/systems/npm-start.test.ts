/** `npm start` in a separate checkout: its output, its ports, and the command it prints for another worker. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';

const root = new URL('../../', import.meta.url).pathname;
const timeoutMs = 120_000;

/** Creates a temporary checkout with its own Redis that links to the programs built in this one. */
function openCheckout(): string {
  const checkout = mkdtempSync(join(tmpdir(), 'dr-'));
  onTestFinished(() => rmSync(checkout, { recursive: true, force: true }));
  cpSync(join(root, 'tools'), join(checkout, 'tools'), { recursive: true });
  for (const name of ['apps', 'libs', 'models', 'node_modules', 'package.json', 'package-lock.json'])
    symlinkSync(join(root, name), join(checkout, name));
  mkdirSync(join(checkout, '.darkroom'));
  const stamp = join(checkout, '.darkroom/built');
  writeFileSync(stamp, '');
  const later = new Date(Date.now() + 3_600_000);
  utimesSync(stamp, later, later);
  return checkout;
}

interface Started {
  /** Returns the output so far, stdout and stderr interleaved. */
  output: () => string;
  status: () => number | null;
}

/** Runs a command as a user would, with `isTerminal` on a pseudo-terminal; stops it when the test ends. */
function start(directory: string, command: string, settings: Record<string, string> = {}, isTerminal = false): Started {
  const env = { PATH: process.env['PATH'], HOME: directory, NUM_THREADS: '1', ...settings };
  const words = isTerminal ? ['script', '-qec', command, '/dev/null'] : ['sh', '-c', `exec ${command}`];
  const child = spawn(words[0]!, words.slice(1), { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  onTestFinished(async () => {
    if (child.exitCode !== null) return;
    const ended = once(child, 'exit');
    // `script` reacts to the signal by closing the terminal, which sends SIGHUP to the command.
    child.kill('SIGTERM');
    await ended;
  });
  return { output: () => output, status: () => child.exitCode };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

/** Returns the ports that a document lists, as offsets from the first metrics port (9400). */
function documentedPorts(file: string, pattern: RegExp): number[] {
  return [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([, port]) => Number(port) - 9400);
}

async function firstOfTen(): Promise<number> {
  const ports = await freePorts(1);
  return Math.min(ports[0]!, 60_000);
}

it('prints readable logs on a terminal and a command that starts another worker', { timeout: 300_000 }, async () => {
  const directory = openCheckout();
  const first = await firstOfTen();
  const settings = { PORT: '0', METRICS_PORT: `${first}`, WORKER_ID: 'first' };
  const { output } = start(directory, 'node tools/start.mjs', settings, true);
  await expect.poll(output, { timeout: timeoutMs }).toMatch(/node apps\/worker\/dist\/main\.js/);
  // A log line as JSON would begin like this.
  expect(output()).not.toMatch(/^\s*\{"level"/m);
  expect(output()).toMatch(/INFO.*\[api\] ready/);

  const listening: number[] = [];
  for (let offset = 0; offset < 10; offset++) if (await isListening(first + offset)) listening.push(offset);
  expect(
    documentedPorts('docs/metrics.md', /\b(94\d\d) (?:api|batch-former|webhook-sender|janitor|worker)\b/g),
  ).toEqual(listening);
  expect(documentedPorts('deploy/prometheus/prometheus.yml', /127\.0\.0\.1:(94\d\d)/g)).toEqual(listening);

  const command = /^\s+(REDIS_URL=.* node apps\/worker\/dist\/main\.js)\s*$/m.exec(output())![1]!;
  // docs/operations.md shows the same command with the same Redis socket.
  const documented = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  expect(documented).toContain(command.replaceAll(directory, '$PWD'));
  const url = /running at (http:\S+)/.exec(output())![1]!;
  const second = start(directory, `env ${command}`, { WORKER_ID: 'second' });
  const workers = async (): Promise<string[]> => {
    const { workers } = (await (await fetch(`${url}/status`)).json()) as {
      workers: { id: string; loaded: boolean }[];
    };
    return workers.filter(({ loaded }) => loaded).map(({ id }) => id);
  };
  await expect.poll(workers, { timeout: timeoutMs }).toContain('second');
  expect(second.status()).toBeNull();
});

it('prints its address once the first of several worker processes serves', { timeout: 300_000 }, async () => {
  const directory = openCheckout();
  const settings = { PORT: '0', NUM_WORKER_PROCESSES: '2', MODEL_DIR: 'models/emoji-sd' };
  const { output } = start(directory, 'node tools/start.mjs', settings);
  await expect.poll(output, { timeout: timeoutMs }).toMatch(/running at/);
  const serving = output().slice(0, output().indexOf('running at'));
  expect(serving).toContain('"msg":"serving"');
});

it.each([
  ['npm start', 'node tools/start.mjs', 1],
  ['a worker', 'node apps/worker/dist/main.js', 78],
])('%s exits with a one-line error when MODEL_DIR is not a model', async (_name, command, code) => {
  const directory = openCheckout();
  mkdirSync(join(directory, 'sd15/unet'), { recursive: true });
  writeFileSync(join(directory, 'sd15/model_index.json'), '{}');
  writeFileSync(join(directory, 'sd15/unet/diffusion_pytorch_model.safetensors'), '');
  for (const [modelDir, words] of [
    ['missing', 'there is nothing at'],
    ['sd15', 'checkpoint of PyTorch'],
  ] as const) {
    const settings = { MODEL_DIR: modelDir, PORT: '0', REDIS_URL: 'redis://127.0.0.1:1' };
    const { output, status } = start(directory, command, settings);
    await expect.poll(status, { timeout: 30_000 }).toBe(code);
    expect(output().trim().split('\n')).toEqual([expect.stringContaining(`MODEL_DIR is "`)]);
    expect(output()).toContain(words);
  }
  expect(execFileSync('ls', ['-A', join(directory, '.darkroom')], { encoding: 'utf8' })).not.toContain('redis');
});

it('sets the REDIS_URL of the local socket or a Redis server in every documented worker command', () => {
  const documents = [
    'README.md',
    'docs/models.md',
    'docs/executors.md',
    'docs/judges.md',
    'docs/upstreams.md',
    'docs/operations.md',
  ];
  for (const file of documents) {
    const blocks = readFileSync(join(root, file), 'utf8').matchAll(/```sh\n(.*?)```/gs);
    for (const [, code = ''] of blocks) {
      if (!code.includes('node apps/worker/dist/main.js')) continue;
      expect([file, code]).toEqual([
        file,
        expect.stringMatching(/REDIS_URL=(?:unix:\/\/\$PWD\/\.darkroom\/redis\/redis\.sock|redis:)/),
      ]);
    }
  }
});
