import type { ChildProcess } from 'node:child_process';

/** How a process ended, once everything it sent has been read: `disconnect` may come later than `exit`. */
export function endOfChild(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    let how: string | undefined;
    const settle = () => {
      if (how !== undefined && !child.connected) resolve(how);
    };
    child.once('exit', (code, signal) => {
      how = signal === null ? `exited with code ${String(code)}` : `was killed by ${signal}`;
      settle();
    });
    child.once('disconnect', settle);
    child.on('error', (error) => {
      // Without a pid it never was; other errors concern one message, and `exit` is still to come.
      if (child.pid === undefined) resolve(`could not be started: ${error.message}`);
    });
  });
}
