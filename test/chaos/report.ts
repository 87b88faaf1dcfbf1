/** A run in a table: its figures, and what holds. */
import { join } from 'node:path';
import { check } from './check.ts';
import type { ChaosOptions, ChaosResult } from './chaos.ts';
import { figuresOf } from './figures.ts';

/** Broken ones that are shown of each. */
const most = 10;

/** Prints it and writes the history; whether all holds. */
export function report(
  options: ChaosOptions,
  { history, atRest, logFile, surprises, redisStarts }: ChaosResult,
): boolean {
  const { seconds, seed, fsync, out } = options;
  const historyFile = join(out, 'history.jsonl');
  history.save(historyFile);
  const invariants = check(history.entries, atRest);
  const figures = [
    ['chaos', `seed ${seed}, ${seconds} s, appendfsync ${fsync}`],
    ...figuresOf(history.entries, logFile),
    ['ended by themselves', surprises.join(', ') || 'none'],
    ['Redis started again', `${redisStarts} times`],
    ['bytes in Redis after all TTLs', `${atRest.bytes.end}, at the start ${atRest.bytes.start}`],
    ['history, log', `${historyFile}, ${logFile}`],
  ] as const;
  const bad = fsync === 'everysec' ? 'LOST' : 'BROKEN';
  for (const { name, broken } of invariants) {
    for (const what of broken.slice(0, most)) console.log(`${bad} ${name}: ${what}`);
    if (broken.length > most) console.log(`${bad} ${name}: and ${broken.length - most} more`);
  }
  const lines = [
    ...figures,
    ...invariants.map(
      ({ name, checked, broken }) => [name, `${broken.length} ${bad.toLowerCase()} of ${checked}`] as const,
    ),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  for (const [name, value] of lines) console.log(`${name.padEnd(width)}  ${value}`);
  const holds = invariants.every(({ broken }) => broken.length === 0);
  if (fsync === 'everysec') console.log('measured: what Redis loses with everysec; this proves nothing');
  else
    console.log(holds ? 'all of it holds' : `it does not hold: npm run chaos -- --seed ${seed} --seconds ${seconds}`);
  return holds;
}
