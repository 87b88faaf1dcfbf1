/** A run in a table: its figures, and what holds. */
import type { ChaosOptions, ChaosResult } from './chaos.ts';
import { check, type Invariant } from './check/check.ts';
import { figuresOf } from './check/figures.ts';

/** Broken ones that are shown of each. */
const most = 10;

/** Prints it; whether all holds that can. */
export function report(options: ChaosOptions, result: ChaosResult): boolean {
  const { seconds, seed, redis, bytes, faults } = options;
  const { history, historyFile, atRest, plan, logFile, redisStarts } = result;
  const invariants = check(history.entries, atRest, plan);
  const leftOut = faults.filter((name) => !plan.faults.includes(name));
  const figures = [
    ['chaos', `seed ${seed}, ${seconds} s, Redis ${redis}, pictures in ${bytes}`],
    ...figuresOf(history.entries, logFile),
    ['faults that cannot be had here', leftOut.join(', ') || 'none'],
    ['Redis started again', `${redisStarts} times`],
    ['bytes in Redis after all TTLs', `${atRest.bytes.end}, at the start ${atRest.bytes.start}`],
    ['history, log', `${historyFile}, ${logFile}`],
  ] as const;
  const mayLose = redis !== 'always';
  const badOf = ({ isForRedis = false }: Invariant): string => (mayLose && isForRedis ? 'lost' : 'broken');
  for (const invariant of invariants) {
    const { name, broken } = invariant;
    const bad = badOf(invariant).toUpperCase();
    for (const what of broken.slice(0, most)) console.log(`${bad} ${name}: ${what}`);
    if (broken.length > most) console.log(`${bad} ${name}: and ${broken.length - most} more`);
  }
  const lines = [
    ...figures,
    ...invariants.map((each) => [each.name, `${each.broken.length} ${badOf(each)} of ${each.checked}`] as const),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  for (const [name, value] of lines) console.log(`${name.padEnd(width)}  ${value}`);
  const holds = invariants.every((each) => each.broken.length === 0 || badOf(each) === 'lost');
  if (mayLose) console.log('measured: what Redis loses; of that this proves nothing');
  if (!holds) console.log(`it does not hold: npm run chaos -- --seed ${seed} --seconds ${seconds} --bytes ${bytes}`);
  else console.log(mayLose ? 'what can hold then holds' : 'all of it holds');
  return holds;
}
