/** llama.cpp's own server with SmolLM2, where tools/build-llama-server.mjs has been run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { provideSmollm2File } from './smollm2.ts';

const server = llamaTool('llama-server');

/** Path of a program that tools/build-llama-server.mjs makes. */
export function llamaTool(name: 'llama-server' | 'llama-quantize'): string {
  return new URL(`../../.darkroom/llama-server-0.3.36/${name}`, import.meta.url).pathname;
}

/** Why it cannot be had; undefined where it can. */
export function whyNoLlamaServer(): string | undefined {
  return existsSync(server) ? undefined : 'llama-server is not there: node tools/build-llama-server.mjs builds it';
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
  /** Whether weights are laid out anew for this CPU, as it does by itself. Older builds of ours crash then on CPUs with AMX. */
  repacks?: boolean;
  /** A GGUF file; SmolLM2's by default. */
  file?: string;
}

/** Where it was before, with `port`. Answers before its model is loaded. @throws Error if it ends instead. */
export async function startLlamaServer(options: LlamaServerOptions): Promise<LlamaServer> {
  const { port, slots = 2, key, template, repacks = false, file = await provideSmollm2File() } = options;
  const url = `http://127.0.0.1:${port}`;
  const room = ['--parallel', `${slots}`, '--ctx-size', `${slots * 512}`, '--threads', '1'];
  const plain = [...(repacks ? [] : ['--no-repack']), '--no-ui', ...(key === undefined ? [] : ['--api-key', key])];
  const chat = template === undefined ? [] : ['--jinja', '--chat-template-file', template.pathname];
  const words = ['--model', file, '--host', '127.0.0.1', '--port', `${port}`, ...room, ...plain, ...chat];
  const child = spawn(server, words, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  while (!(await answers(url))) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`llama-server ended: ${String(child.exitCode ?? child.signalCode)}`);
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
