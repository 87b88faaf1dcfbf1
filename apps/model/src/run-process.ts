import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { memoryReturningEnvironment } from '@darkroom/config';
import type { LoadModelOptions } from '@darkroom/diffusion';
import { CommandError } from './command-error.ts';
import type { Failed } from './serve-request.ts';

export interface RunProcessOptions<Message> {
  /** The program's file without its ending. The built one is run, since Node runs no TypeScript. */
  program: string;
  /** Its first message. */
  request: { readonly model: LoadModelOptions };
  onMessage: (message: Message) => void;
  signal: AbortSignal;
}

const programs = new URL(import.meta.url.endsWith('.ts') ? '../dist/' : './', import.meta.url);

/** What a process that dies has to say comes last. */
const keptText = 2000;

/**
 * Runs what loads a model in a process of its own: whatever a damaged model does to ONNX Runtime, the one that asked
 * lives on and says so. Memory is that process's alone, and is free again when it ends.
 *
 * @returns how it ended, with its last words.
 * @throws CommandError saying what it failed by, where it could say so.
 */
export async function runProcess<Message>(options: RunProcessOptions<Message>): Promise<string> {
  const { program, request, onMessage, signal } = options;
  const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const;
  // As a worker starts its engine.
  const environment = request.model.hasLowMemory === true ? { env: memoryReturningEnvironment() } : {};
  const path = fileURLToPath(new URL(`${program}.js`, programs));
  const child = fork(path, { execArgv: [], stdio: [...stdio], serialization: 'advanced', ...environment });
  let lastWords = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (lastWords = (lastWords + text).slice(-keptText)));
  let failure: string | undefined;
  child.on('message', (message: Message & Partial<Failed>) => {
    if (message.failure === undefined) onMessage(message);
    else ({ failure } = message);
  });
  const kill = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  child.send(request);
  const [code, endSignal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  signal.removeEventListener('abort', kill);
  if (failure !== undefined) throw new CommandError(failure);
  return `${howItEnded(code, endSignal)}\n${lastWords}`.trimEnd();
}

function howItEnded(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === 'SIGKILL') return 'was killed (SIGKILL), as the kernel does when memory runs out';
  if (signal === 'SIGABRT') return 'aborted (SIGABRT), as ONNX Runtime does when it gets no memory';
  return signal === null ? `ended with code ${code}` : `crashed (${signal})`;
}
