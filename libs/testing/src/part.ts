/** One process of the system, running the built app as in production. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** `light`: all apps except the worker in one process, as with `npm start`. */
export type PartName = 'api' | 'batch-former' | 'janitor' | 'webhook-sender' | 'worker' | 'light';

export interface Part {
  name: PartName;
  process: ChildProcess;
  /** URL of the API; empty for other processes. */
  url: string;
  /** URL of its metrics and probes. */
  metricsUrl: string;
  /** Resolves when the process reports ready; rejects if it exits first. */
  ready: Promise<void>;
  /** Its standard error so far. */
  stderr: string;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<void>;
  /** Sends SIGTERM and waits for the exit. */
  stop(): Promise<void>;
}

const here = new URL('../../../', import.meta.url).pathname;

export interface LaunchOptions {
  /** Repository whose build runs. */
  root?: string;
  /** Runs in place of Node, with Node's arguments. */
  execPath?: string;
}

/** Starts a process and appends its log to a file. */
export function launchPart(
  name: PartName,
  environment: Record<string, string>,
  logFile: string,
  { root = here, execPath = process.execPath }: LaunchOptions = {},
): Part {
  const script = name === 'light' ? 'tools/start/light.mjs' : `apps/${name}/dist/main.js`;
  const child = fork(join(root, script), {
    cwd: root,
    execPath,
    // Without Vitest's conditions, which would make the built apps import sources.
    execArgv: [],
    env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const exited = once(child, 'exit');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal);
      await exited;
    }
  };
  const ready = becomesReady(child, `${name} ended before it was ready; see ${logFile}`);
  // Callers may ignore `ready`.
  ready.catch(() => {});
  const stops = { kill: () => end('SIGKILL'), stop: () => end('SIGTERM') };
  const part: Part = { name, process: child, url: '', metricsUrl: '', ready, stderr: '', ...stops };
  const log = createWriteStream(logFile, { flags: 'a' });
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    part.stderr += text;
    log.write(text);
  });
  const lines = createInterface({ input: child.stdout! }).on('line', (line) => {
    log.write(`${line}\n`);
    part.metricsUrl ||= /"metrics_url":"(?<url>http[^"]+)"/.exec(line)?.groups?.['url'] ?? '';
    part.url ||= /"url":"(?<url>http[^"]+)"/.exec(line)?.groups?.['url'] ?? '';
  });
  lines.once('close', () => log.end());
  return part;
}

async function becomesReady(child: ChildProcess, otherwise: string): Promise<void> {
  const isReady = once(child, 'message').then(() => true);
  if (!(await Promise.race([isReady, once(child, 'exit').then(() => false)]))) throw new Error(otherwise);
}
