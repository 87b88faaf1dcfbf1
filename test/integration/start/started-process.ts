import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A fixture script that runs as a process of its own, with its output to wait for. */
export interface StartedProcess {
  child: ChildProcess;
  /** The first match in what was written since the last match; fails when the process ends before. */
  output(pattern: RegExp): Promise<RegExpExecArray>;
  /**
   * Resolves when it has ended and nobody holds its standard output any more: that is, when all processes it had
   * started have ended too.
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
