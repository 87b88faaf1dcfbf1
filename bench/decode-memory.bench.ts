/** Memory and CPU time of decoding a large image at once and in tiles (docs/serving-models.md, "Large images"). */
import { execFileSync } from 'node:child_process';
import { it } from 'vitest';
import { publish } from './publish.ts';
import { tableOf } from './table.ts';

const script = new URL('decode-memory.mjs', import.meta.url).pathname;
const sides = [512, 1024, 2048];
const ways = { whole: 'in one go', pieces: 'in pieces' };

it('memory and time of a decode', () => {
  const memory: Record<string, Record<string, number>> = {};
  const time: typeof memory = {};
  for (const [way, name] of Object.entries(ways)) {
    [memory[name], time[name]] = [{}, {}];
    for (const side of sides) {
      const output = execFileSync(process.execPath, [script, 'models/emoji-sd', `${side}`, way], { encoding: 'utf8' });
      const { peakMb, cpuSeconds } = JSON.parse(output) as { peakMb: number; cpuSeconds: number };
      memory[name][`${side} × ${side}`] = peakMb;
      time[name][`${side} × ${side}`] = cpuSeconds;
    }
  }
  publish({
    name: 'decode-memory',
    title: 'What decoding a large image takes',
    notes: [
      'The embedded model, each decode in its own process on two threads; all memory of that process, including its code.',
    ],
    tables: [tableOf('Memory at most, MB (less is better)', memory), tableOf('s of a CPU (less is better)', time)],
  });
});
