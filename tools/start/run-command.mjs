import { spawn } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/** Runs a command to its end without standard input, and shows its output. Returns whether it succeeded. */
export function runCommand(file, args, { env = process.env, cwd, quiet = false } = {}) {
  return new Promise((resolve) => {
    const output = quiet ? 'ignore' : 'inherit';
    const child = spawn(file, args, { env, cwd, stdio: ['ignore', output, output] });
    // A signal in the meantime ends the command too.
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

/** Returns the full path of a program on PATH, or undefined. */
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
