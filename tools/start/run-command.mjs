import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Runs a command to its end with its output shown and no way to ask questions; true when it succeeded. */
export function runCommand(file, args, { env = process.env, cwd, quiet = false } = {}) {
  return new Promise((resolve) => {
    const output = quiet ? 'ignore' : 'inherit';
    const child = spawn(file, args, { env, cwd, stdio: ['ignore', output, output] });
    // Asked to stop in the middle of it, we take it with us.
    const onSignal = () => {
      child.kill('SIGTERM');
      process.exit(1);
    };
    for (const signal of stopSignals) process.on(signal, onSignal);
    const end = (succeeded) => {
      for (const signal of stopSignals) process.off(signal, onSignal);
      resolve(succeeded);
    };
    child.once('error', () => end(false));
    child.once('exit', (code) => end(code === 0));
  });
}

/** The full path of a program on PATH, or undefined. */
export function findProgram(name, env = process.env) {
  for (const directory of (env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const candidate = join(directory, name);
    try {
      accessSync(candidate, constants.X_OK);
      if (statSync(candidate).isFile()) return candidate;
    } catch {
      // Not in this directory.
    }
  }
  return undefined;
}
