import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A fixture script running as a child process, with its output. */
export interface StartedProcess {
  child: ChildProcess;
  /** Resolves with the first match after the previous match; rejects when the process ends without one. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /**
   * Resolves once no process holds the child's standard output: the child and all processes that it started have ended.
   */
  end: Promise<{ code: number | null; output: string }>;
}

export function startFixture(
  name: string,
  fixtureArguments: readonly string[],
  environment: Record<string, string | undefined> = {},
): StartedProcess {
  const child = spawn(process.execPath, [join(import.meta.dirname, '__fixtures__', name), ...fixtureArguments], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, REDIS_URL: undefined, ...environment },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  let position = 0;
  let onChange: (() => void) | undefined;
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data: Buffer) => {
      output += data.toString();
      onChange?.();
    });
  const end = once(child, 'close').then(([code]: (number | null)[]) => ({ code: code ?? null, output }));
  return {
    child,
    end,
    output: (pattern) =>
      new Promise((resolve, reject) => {
        onChange = () => {
          const match = pattern.exec(output.slice(position));
          if (!match) return;
          position += match.index + match[0].length;
          resolve(match);
        };
        void end.then(() => reject(new Error(`ended without ${pattern}:\n${output}`)));
        onChange();
      }),
  };
}
