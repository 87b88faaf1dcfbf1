// A parent whose child obeys it and blocks for ever, run by parent-channel.test.ts. The parent says the child's pid.
import { fork } from 'node:child_process';
import { once } from 'node:events';

const [built, role] = process.argv.slice(2);
if (role === 'child') {
  const { obeyParent } = await import(built);
  obeyParent();
  await new Promise((resolve) => process.send('blocking', undefined, undefined, resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
} else {
  const stdio = ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'];
  const child = fork(import.meta.filename, [built, 'child'], { stdio });
  await once(child, 'message');
  process.stdout.write(`${child.pid}\n`);
}
