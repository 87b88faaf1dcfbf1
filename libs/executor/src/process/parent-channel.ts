/** What every process that an executor forks owes the one that forked it. */
import { spawn } from 'node:child_process';

/** The channel after IPC's; nothing is ever said on it, and the kernel closes it with the parent. */
const guardFd = 4;

/** Ends with its parent, however that dies and whatever this does then, and by nothing else. */
export function obeyParent(): void {
  // The parent decides when this ends. A Ctrl-C reaches the whole process group, and must not cost the last checkpoints.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => {});
  // The kernel closes channels however the parent dies, kill -9 included.
  process.on('disconnect', () => process.exit(0));
  // A call to the device that never returns would keep this from being heard. A thread could hear it too, for 8 MB of memory.
  const guard = `trap '' INT TERM HUP; read -r _ <&3; kill -KILL ${process.pid}`;
  spawn('/bin/sh', ['-c', guard], { stdio: ['ignore', 'ignore', 'ignore', guardFd] }).unref();
}
