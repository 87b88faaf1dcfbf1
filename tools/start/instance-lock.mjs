// One `npm start` per checkout: two would start two Redis servers on one directory.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { SetupError } from './say.mjs';

/**
 * Takes the lock file, or throws when another live launcher has it. A file left behind by one that was killed is
 * replaced: it names the process by number and start time, so a number given to another process since does not count.
 *
 * @returns a function that gives the lock back
 */
export function takeInstanceLock(file) {
  mkdirSync(dirname(file), { recursive: true });
  const mine = JSON.stringify({ pid: process.pid, startedAt: startTimeOf(process.pid) });
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      writeFileSync(file, mine, { flag: 'wx' });
      return () => {
        if (readOrUndefined(file) === mine) rmSync(file, { force: true });
      };
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    const pid = liveOwner(file);
    if (pid !== undefined)
      throw new SetupError(`It is already running from this directory (process ${pid}). Stop that one first.`);
    rmSync(file, { force: true });
  }
  throw new SetupError(`Another "npm start" is starting at this moment (${file}).`);
}

function liveOwner(file) {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && startedAt && startTimeOf(pid) === startedAt ? pid : undefined;
  } catch {
    // Gone in the meantime, or cut short by a crash: nobody's.
    return undefined;
  }
}

/** When a process started, in whatever form the system tells it; undefined when there is no such process. */
function startTimeOf(pid) {
  try {
    // Field 22, counted from after the command name, which may hold spaces and brackets.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    if (process.platform === 'linux') return undefined;
  }
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

function readOrUndefined(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
