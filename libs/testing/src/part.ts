/** One process of the system, as in production: the built app. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** `light`: all but the worker in one process, as with `npm start`. */
export type PartName = 'api' | 'batch-former' | 'janitor' | 'webhook-sender' | 'worker' | 'light';

export interface Part {
  name: PartName;
  process: ChildProcess;
  /** The API's address; empty for the others. */
  url: string;
  /** Where its metrics and probes are. */
  metricsUrl: string;
  /** Resolves when it says so; rejects when it ends before. */
  ready: Promise<void>;
  /** What it has written to its standard error. */
  stderr: string;
  /** SIGKILL, and wait for the end. */
  kill(): Promise<void>;
  /** SIGTERM, and wait for the end. */
  stop(): Promise<void>;
}

const here = new URL('../../../', import.meta.url).pathname;

/** Starts it; what it logs is appended to the file. `root`: of the repository whose build it is. */
export function launchPart(
  name: PartName,
  environment: Record<string, string>,
  logFile: string,
  { root = here }: { root?: string } = {},
): Part {
  const script = name === 'light' ? 'tools/start/light.mjs' : `apps/${name}/dist/main.js`;
  const child = fork(join(root, script), {
    cwd: root,
    // Vitest's conditions would send the built apps to the sources.
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
  // Who launches it may not care.
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
