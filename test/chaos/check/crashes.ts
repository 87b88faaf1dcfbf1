/** Finds crashes of Darkroom's processes and engines in their log. */

/** Excluded: injected faults use SIGKILL, and so does a worker whose engine hangs. */
const byFault = /SIGKILL/;
/** Reasons of a crashed engine or module process. An unavailable upstream logs other reasons. */
const ofProcess = /exited with code|was killed by/;

/** Returns the crashes in a log. `log`: JSON lines, mixed with plain output of Node. */
export function crashesIn(log: string): { process: string; how: string }[] {
  return log.split('\n').flatMap((line) => {
    if (!/"level":"fatal"|"engine lost"/.test(line) || !line.endsWith('}')) return [];
    const { level, app, pid, msg, reason = '', err } = JSON.parse(line) as LogLine;
    const why = reason || (err?.message ?? '');
    const isCrash = (level === 'fatal' || ofProcess.test(why)) && !byFault.test(why);
    return isCrash ? [{ process: `${app} ${pid}`, how: `${msg} ${why}` }] : [];
  });
}

interface LogLine {
  level: string;
  app: string;
  pid: number;
  msg: string;
  reason?: string;
  err?: { message: string };
}
