// Allows one system per directory: two would start two Redis servers on one directory.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { SetupError } from './say.mjs';

/**
 * Takes the lock file, or throws if another live launcher holds it. A file of a killed launcher is replaced: it names
 * the process by id and start time, so a reused process id does not count.
 *
 * @returns a function that releases the lock
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
      throw new SetupError(`Darkroom already runs from this directory (process ${pid}). Stop it first.`);
    rmSync(file, { force: true });
  }
  throw new SetupError(`Another Darkroom starts in this directory at this moment (${file}).`);
}

function liveOwner(file) {
  try {
    const { pid, startedAt } = JSON.parse(readFileSync(file, 'utf8'));
    return Number.isInteger(pid) && startedAt && startTimeOf(pid) === startedAt ? pid : undefined;
  } catch {
    // The file is gone or incomplete: no process holds the lock.
    return undefined;
  }
}

/** Returns the start time of a process in the system's own format, or undefined if there is no such process. */
function startTimeOf(pid) {
  try {
    // Field 22 of the line. Count after the command name, which may contain spaces and brackets.
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
