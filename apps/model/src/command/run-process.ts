import { fileURLToPath } from 'node:url';
import { memoryReturningEnvironment } from '@darkroom/config';
import { Child, type ChildEnd } from '@darkroom/core';
import type { LoadImageModelOptions } from '@darkroom/diffusion';
import { z } from 'zod';
import { CommandError } from './command-error.ts';
import type { Failed } from './serve-request.ts';

export interface RunProcessOptions<Message extends object> {
  /** Program file without extension. Runs the built file, since Node does not run TypeScript. */
  program: string;
  /** First message to the program. */
  request: { readonly model: LoadImageModelOptions };
  onMessage: (message: Message) => void;
  signal: AbortSignal;
}

const programs = new URL(import.meta.url.endsWith('.ts') ? '../../dist/' : '../', import.meta.url);

const failed: z.ZodType<Failed> = z.object({ failure: z.string() });

/**
 * Runs a program that loads a model in its own process, so that a crash of ONNX Runtime does not end the command, and
 * its memory is measured separately.
 *
 * @returns how the process ended, with its last output.
 * @throws CommandError with the failure that the program reported.
 */
export async function runProcess<Message extends object>(options: RunProcessOptions<Message>): Promise<string> {
  const { program, request, onMessage, signal } = options;
  let failure: string | undefined;
  const child = new Child<typeof request, Failed | Message>({
    entry: fileURLToPath(new URL(`${program}.js`, programs)),
    // The same environment as a worker's engine process.
    environment: request.model.hasLowMemory === true ? memoryReturningEnvironment() : undefined,
    stdout: 'ignore',
    stderr: 'tail',
    // Anything else comes from our own programs.
    schema: failed.or(z.custom<Message>((message) => typeof message === 'object' && message !== null)),
    onMessage: (message) => {
      if ('failure' in message) ({ failure } = message);
      else onMessage(message);
    },
  });
  const kill = (): void => child.kill();
  signal.addEventListener('abort', kill, { once: true });
  child.send(request);
  const end = await child.ended;
  signal.removeEventListener('abort', kill);
  if (failure !== undefined) throw new CommandError(failure);
  return `${describeExit(end)}\n${end.stderr}`.trimEnd();
}

function describeExit({ signal, how }: ChildEnd): string {
  if (signal === 'SIGKILL') return 'was killed (SIGKILL), as the kernel does when memory runs out';
  if (signal === 'SIGABRT') return 'aborted (SIGABRT), as ONNX Runtime does when it gets no memory';
  return signal === null ? how : `crashed (${signal})`;
}
