// A parent whose child obeys it and blocks for ever, run by fork-child.test.ts. The parent says the child's pid.
import { once } from 'node:events';

const built = process.env.BUILT;
if (process.send) {
  const { obeyParent } = await import(`${built}/parent-channel.js`);
  obeyParent();
  await new Promise((resolve) => process.send('blocking', undefined, undefined, resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
} else {
  const { forkChild } = await import(`${built}/fork-child.js`);
  const child = forkChild(import.meta.filename);
  await once(child, 'message');
  process.stdout.write(`${child.pid}\n`);
}
