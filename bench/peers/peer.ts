/** Peers: servers that generate images, and a bare loop without a server. */
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf } from '../processes.ts';

/** Threads of ONNX Runtime, for all peers. */
export const threads = availableParallelism();
/** Maximum rows of a batch, for all peers. */
export const batchSize = 8;
export const modelDirectory = new URL('../../models/emoji-sd', import.meta.url).pathname;

export interface ImageRequest {
  prompt: string;
  steps: number;
  guidance: number;
  seed: number;
  /** Pixels. */
  width: number;
  height: number;
}

export interface Peer {
  name: string;
  /** How the peer batches requests with different parameters. */
  batches: 'groups' | 'rows' | 'joining rows';
  start(): Promise<RunningPeer>;
}

export interface RunningPeer {
  /** Generates images with this many in flight. `isBurst`: all requests are sent at once. */
  paintAll(requests: readonly ImageRequest[], load: { inFlight: number; isBurst: boolean }): Promise<Painted>;
  /** Sends one request; its client disconnects on the signal. Undefined if the peer has no clients. */
  paint: ((request: ImageRequest, leave?: AbortSignal) => Promise<Uint8Array>) | undefined;
  /** Returns the row steps since the start. */
  rowSteps(): Promise<number>;
  /** Returns the pids of all its processes. */
  pids(): number[];
  stop(): Promise<void>;
}

export interface Painted {
  /** Seconds from the request to the complete PNG, of each image. */
  seconds: readonly number[];
  /** The last image. */
  png: Uint8Array;
}

/** Runs a closed loop of clients. */
export function clientsOf(paint: (request: ImageRequest) => Promise<Uint8Array>): RunningPeer['paintAll'] {
  return async (requests, { inFlight }) => {
    const waiting = [...requests];
    const seconds: number[] = [];
    let png = new Uint8Array();
    const client = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const begunAtMs = performance.now();
        png = new Uint8Array(await paint(next));
        seconds.push((performance.now() - begunAtMs) / 1000);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, client));
    return { seconds, png };
  };
}

/** POSTs JSON. @throws Error for any status but 200. */
export async function post(url: string, body: object, signal?: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: signal ?? null });
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response;
}

/** A program and its descendants, which end with this process. */
export interface Started {
  child: ChildProcess;
  /** The last line of its standard error. */
  lastWords: () => string;
  pids(): number[];
  stop(): Promise<void>;
}

const stopTimeoutMs = 20_000;

/** Starts a program; prints its last output if it ends unexpectedly. */
export function startProgram(program: string, words: readonly string[], options: SpawnOptions): Started {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  let output = '';
  child.stderr!.on('data', (text: Buffer) => (output = `${output}${text.toString()}`.slice(-4000)));
  const exited = once(child, 'exit');
  const pids = (): number[] => [child.pid!, ...childrenOf(child.pid!)];
  const killTree = (): void => killAll(pids());
  process.once('exit', killTree);
  let isStopping = false;
  void exited.then(([code]) => {
    if (!isStopping) console.log(`${program} ${words.join(' ')} ended unexpectedly (exit code ${code}):\n${output}`);
  });
  return {
    child,
    pids,
    lastWords: () => output.trim().split('\n').at(-1)!,
    async stop() {
      isStopping = true;
      process.off('exit', killTree);
      const all = pids();
      child.stdin!.end();
      kill(child.pid!, 'SIGTERM');
      await Promise.race([exited, delay(stopTimeoutMs, undefined, { ref: false })]);
      killAll(all);
    },
  };
}

function killAll(all: readonly number[]): void {
  for (const pid of all) kill(pid, 'SIGKILL');
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

const startTimeoutMs = 180_000;

/** Retries until the peer returns an image. @throws Error after three minutes, or if its process ends. */
export async function waitUntilReady({ child, lastWords }: Started, paint: () => Promise<unknown>): Promise<void> {
  const begunAtMs = performance.now();
  for (;;) {
    try {
      await paint();
      return;
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`the server ended during startup: ${lastWords()}`, { cause: error });
      if (performance.now() - begunAtMs > startTimeoutMs) throw error;
      await delay(200);
    }
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
