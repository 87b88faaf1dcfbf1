/** What our processes say themselves of how they, or their engines, went down. */

/** Faults kill by SIGKILL, and so does a worker whose engine hangs. */
const byFault = /SIGKILL/;
/** A process of ours, or of a module; of a server that is away the reason is another. */
const ofProcess = /exited with code|was killed by/;

/** `log`: JSON lines, and what Node has said between them. */
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
