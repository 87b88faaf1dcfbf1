/** What is measured: servers that make pictures, and the loop without one. */
import { type ChildProcess, spawn, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { availableParallelism } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { childrenOf } from '../processes.ts';

/** Of ONNX Runtime, for everybody. */
export const threads = availableParallelism();
/** Rows of a batch, for everybody. */
export const batchSize = 8;
export const modelDirectory = new URL('../../models/emoji-sd', import.meta.url).pathname;

export interface Asked {
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
  /** How it makes a batch of requests with different parameters. */
  batches: 'groups' | 'rows' | 'joining rows';
  start(): Promise<RunningPeer>;
}

export interface RunningPeer {
  /** Makes them with so many at a time. `isBurst`: all are asked for at once. */
  paintAll(asked: readonly Asked[], load: { inFlight: number; isBurst: boolean }): Promise<Painted>;
  /** One request, whose client leaves when the signal says so; undefined where there are no clients. */
  paint: ((asked: Asked, leave?: AbortSignal) => Promise<Uint8Array>) | undefined;
  /** Steps of pictures since its start. */
  rowSteps(): Promise<number>;
  /** Of all its processes. */
  pids(): number[];
  stop(): Promise<void>;
}

export interface Painted {
  /** From asking to the whole PNG, of each. */
  seconds: readonly number[];
  /** The last one. */
  png: Uint8Array;
}

/** Clients that ask for the next picture as soon as they have theirs. */
export function clientsOf(paint: (asked: Asked) => Promise<Uint8Array>): RunningPeer['paintAll'] {
  return async (asked, { inFlight }) => {
    const waiting = [...asked];
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

/** POSTs JSON. @throws Error for any answer but 200. */
export async function post(url: string, body: object, signal?: AbortSignal): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: signal ?? null });
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`);
  return response;
}

/** A program and what it starts, which end with this process. */
export interface Started {
  child: ChildProcess;
  /** The last line of its standard error. */
  lastWords: () => string;
  pids(): number[];
  stop(): Promise<void>;
}

const stopTimeoutMs = 20_000;

/** Starts a program whose output is kept to be shown if it ends before it should. */
export function startProgram(program: string, words: readonly string[], options: SpawnOptions): Started {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  let said = '';
  child.stderr!.on('data', (text: Buffer) => (said = `${said}${text.toString()}`.slice(-4000)));
  const exited = once(child, 'exit');
  const pids = (): number[] => [child.pid!, ...childrenOf(child.pid!)];
  const killTree = (): void => killAll(pids());
  process.once('exit', killTree);
  let isStopping = false;
  void exited.then(([code]) => {
    if (!isStopping) console.log(`${program} ${words.join(' ')} ended by itself (${code}):\n${said}`);
  });
  return {
    child,
    pids,
    lastWords: () => said.trim().split('\n').at(-1)!,
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

/** Asks again until there is a picture. @throws Error after three minutes, or once its process has ended. */
export async function untilPainting({ child, lastWords }: Started, paint: () => Promise<unknown>): Promise<void> {
  const begunAtMs = performance.now();
  for (;;) {
    try {
      await paint();
      return;
    } catch (error) {
      if (child.exitCode !== null) throw new Error(`it ended at its start: ${lastWords()}`, { cause: error });
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
