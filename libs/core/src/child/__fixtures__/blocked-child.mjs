// Run by child.test.ts: starts a child that obeys its parent and blocks forever, and prints the child's pid.
import { z } from 'zod';
import { Child, obeyParent, sendToParent } from '@darkroom/core';

if (process.send) {
  obeyParent(() => {});
  await sendToParent({ type: 'blocking' });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
} else {
  const child = new Child({ entry: import.meta.filename, schema: z.object({ type: z.literal('blocking') }) });
  await child.next();
  process.stdout.write(`${child.pid}\n`);
}
