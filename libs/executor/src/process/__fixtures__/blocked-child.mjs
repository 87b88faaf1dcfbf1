// A parent whose child has the guard and blocks for ever, run by parent-guard.test.ts. The parent says the child's pid.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const [guard, role] = process.argv.slice(2);
if (role === 'child') {
  await once(new Worker(guard), 'online');
  await new Promise((resolve) => process.send('blocking', undefined, undefined, resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
} else {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'];
  const child = fork(import.meta.filename, [guard, 'child'], { stdio });
  await once(child, 'message');
  process.stdout.write(`${child.pid}\n`);
}
