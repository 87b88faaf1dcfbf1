/** What decoding a large picture takes, in one go and in pieces (docs/models.md, "Large pictures"). */
import { execFileSync } from 'node:child_process';
import { it } from 'vitest';
import { publish } from './publish.ts';

const script = new URL('decode-memory.mjs', import.meta.url).pathname;
const sides = [512, 1024, 2048];
const ways = { whole: 'in one go', pieces: 'in pieces' };

it('memory and time of a decode', { timeout: 600_000 }, () => {
  const found = sides.map((side) =>
    Object.keys(ways).map((way) => {
      const words = [script, 'models/emoji-sd', `${side}`, way];
      return JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8' })) as {
        peakMb: number;
        cpuSeconds: number;
      };
    }),
  );
  const table = (title: string, read: (one: (typeof found)[0][0]) => number) => {
    const rows = sides.map((side, at) => [`${side} × ${side}`, ...found[at]!.map(read)]);
    return { title, columns: ['', ...Object.values(ways)], rows, drawn: 'bars' } as const;
  };
  publish({
    name: 'decode-memory',
    title: 'What decoding a large picture takes',
    notes: [
      'The embedded model, each decode in a process of its own on two threads; all memory of that process, its code too.',
    ],
    tables: [
      table('Memory at most, MB (less is better)', ({ peakMb }) => peakMb),
      table('s of a CPU (less is better)', ({ cpuSeconds }) => cpuSeconds),
    ],
  });
});
