// Run by child.test.ts: opens files up to its limit, starts a child, sends to it, and prints how it ended.
import { openSync } from 'node:fs';
import { z } from 'zod';
import { Child } from '@darkroom/core';

try {
  for (;;) openSync('/dev/null');
} catch {
  const child = new Child({ entry: import.meta.filename, schema: z.unknown(), hasStdin: true });
  child.send({ type: 'start' }, Buffer.from('bytes'));
  const { how } = await child.ended;
  process.stdout.write(`${how}\n`);
}
