/** llama.cpp's own server with SmolLM2, where tools/build-llama-server.mjs has been run. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { provideSmollm2File } from './smollm2.ts';

const server = new URL('../../.darkroom/llama-server-0.3.36/llama-server', import.meta.url).pathname;

/** Why it cannot be had; undefined where it can. */
export function whyNoLlamaServer(): string | undefined {
  return existsSync(server) ? undefined : 'llama-server is not there: node tools/build-llama-server.mjs builds it';
}

export interface LlamaServer {
  url: string;
  /** SIGKILL, and wait for the end. */
  kill(): Promise<void>;
}

/** Where it was before, with `port`. Answers before its model is loaded. */
export async function startLlamaServer({
  port,
  slots = 2,
  key,
}: {
  port: number;
  slots?: number;
  key?: string;
}): Promise<LlamaServer> {
  const file = await provideSmollm2File();
  const room = ['--parallel', `${slots}`, '--ctx-size', `${slots * 512}`, '--threads', '2', '--no-webui'];
  const words = [
    '--model',
    file,
    '--host',
    '127.0.0.1',
    '--port',
    `${port}`,
    ...room,
    ...(key === undefined ? [] : ['--api-key', key]),
  ];
  const child = spawn(server, words, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { url: `http://127.0.0.1:${port}`, kill };
}

/** For a server that comes back to where it was. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
