// A launcher of fake parts: node system.mjs <name>[:behaviour]…
import { join } from 'node:path';
import { Part } from '../../../../tools/start/part.mjs';
import { System } from '../../../../tools/start/system.mjs';

const parts = process.argv.slice(2).map((text) => {
  const [name, behaviour = ''] = text.split(':');
  const script = join(import.meta.dirname, 'part.mjs');
  return new Part({ name, script, args: [name, behaviour], timing: { firstPauseMs: 10, longestPauseMs: 40 } });
});
const system = new System(parts, { sameRequestMs: 0 });
for (const part of parts) part.start();
await system.untilStopped();
console.log('all stopped');
process.exit(0);
