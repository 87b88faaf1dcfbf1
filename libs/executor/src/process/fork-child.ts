import { type ChildProcess, fork, spawnSync } from 'node:child_process';

/** Of util-linux 2.33 or later, which every Debian has. */
const setpriv = '/usr/bin/setpriv';
const endsWithParent = ['--pdeathsig', 'KILL'];
let canEndWithParent: boolean | undefined;

/**
 * Forks a process that obeys this one (`obeyParent`). Where it can, Linux ends it with this one, however this dies and whatever it does then:
 * a call to the device that never returns would keep it from hearing that it is alone.
 */
export function forkChild(entry: string, environment?: NodeJS.ProcessEnv): ChildProcess {
  canEndWithParent ??= spawnSync(setpriv, [...endsWithParent, '/bin/true']).status === 0;
  return fork(entry, {
    serialization: 'advanced',
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    ...(environment && { env: environment }),
    // No flags of this process: a debugger's port or a test's conditions are not the child's.
    ...(canEndWithParent ? { execPath: setpriv, execArgv: [...endsWithParent, process.execPath] } : { execArgv: [] }),
  });
}
