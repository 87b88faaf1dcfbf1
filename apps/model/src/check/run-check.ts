import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { CommandError } from '../command-error.ts';
import type { CheckMessage, CheckRequest } from './check-message.ts';

/** What was done, by the name of the work. */
export type CheckResult = Readonly<Record<'load' | 'step' | 'decode', { ms: number; peakBytes: number }>>;

// Always the built program: Node runs no TypeScript.
const program = fileURLToPath(
  new URL(
    import.meta.url.endsWith('.ts') ? '../../dist/check/check-process.js' : './check-process.js',
    import.meta.url,
  ),
);
/** What a process that dies has to say comes last. */
const keptText = 2000;

/** Has a model loaded and run. @throws CommandError saying what it failed by, whatever it did to its process. */
export async function runCheck(request: CheckRequest, signal: AbortSignal): Promise<CheckResult> {
  const child = fork(program, { execArgv: [], stdio: ['ignore', 'ignore', 'pipe', 'ipc'], serialization: 'advanced' });
  const results: Partial<Record<'load' | 'step' | 'decode', { ms: number; peakBytes: number }>> = {};
  let failure: string | undefined;
  let lastWords = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (lastWords = (lastWords + text).slice(-keptText)));
  child.on('message', (message: CheckMessage) => {
    if (message.type === 'failed') failure = message.message;
    else results[message.what] = { ms: message.ms, peakBytes: message.peakBytes };
  });
  signal.addEventListener('abort', () => child.kill('SIGKILL'), { once: true });
  child.send(request);
  const [code, endSignal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (failure !== undefined) throw new CommandError(failure);
  const { load, step, decode } = results;
  if (load && step && decode) return { load, step, decode };
  throw new CommandError(`${whatWasDone(results)}, its process ${howItEnded(code, endSignal)}\n${lastWords}`.trimEnd());
}

function whatWasDone({ load, step }: { load?: unknown; step?: unknown }): string {
  if (load === undefined) return 'While the model was loaded';
  return step === undefined ? 'In the first step' : 'While the picture was decoded';
}

function howItEnded(code: number | null, signal: NodeJS.Signals | null): string {
  if (signal === 'SIGKILL') return 'was killed (SIGKILL), as the kernel does when memory runs out';
  if (signal === 'SIGABRT') return 'aborted (SIGABRT), as ONNX Runtime does when it gets no memory';
  return signal === null ? `ended with code ${code}` : `crashed (${signal})`;
}
