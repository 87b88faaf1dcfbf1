import { type ChildProcess, fork } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Of util-linux: every Debian has it. */
const setpriv = '/usr/bin/setpriv';
const isGuarded = process.platform === 'linux' && existsSync(setpriv);

/**
 * Forks a process that obeys this one (`obeyParent`). Linux ends it with this one, however this dies and whatever it does then: a call to
 * the device that never returns would keep it from hearing that it is alone.
 */
export function forkChild(entry: string, environment?: NodeJS.ProcessEnv): ChildProcess {
  return fork(entry, {
    serialization: 'advanced',
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    ...(environment && { env: environment }),
    // No flags of this process: a debugger's port or a test's conditions are not the child's.
    ...(isGuarded ? { execPath: setpriv, execArgv: ['--pdeathsig', 'KILL', process.execPath] } : { execArgv: [] }),
  });
}
