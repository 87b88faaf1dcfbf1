/** Prints a run as a table: statistics and invariants. */
import type { ChaosOptions, ChaosResult } from './chaos.ts';
import { check, type Invariant } from './check/check.ts';
import { figuresOf } from './check/figures.ts';

/** Maximum number of violations shown per invariant. */
const maxShown = 10;

/** Prints the table; returns whether all invariants hold, except those that this Redis may break by losing writes. */
export function report(options: ChaosOptions, result: ChaosResult): boolean {
  const { seconds, seed, redis, bytes, faults } = options;
  const { history, historyFile, atRest, plan, logFile, redisStarts } = result;
  const invariants = check(history.entries, atRest, plan);
  const leftOut = faults.filter((name) => !plan.faults.includes(name));
  const figures = [
    ['chaos', `seed ${seed}, ${seconds} s, Redis ${redis}, images in ${bytes}`],
    ...figuresOf(history.entries, logFile),
    ['faults not possible here', leftOut.join(', ') || 'none'],
    ['Redis restarted', `${redisStarts} times`],
    ['bytes in Redis after all TTLs', `${atRest.bytes.end}, at the start ${atRest.bytes.start}`],
    ['history, log', `${historyFile}, ${logFile}`],
  ] as const;
  const mayLose = redis !== 'always';
  const badOf = ({ isBrokenByLostWrites = false }: Invariant): string =>
    mayLose && isBrokenByLostWrites ? 'lost' : 'broken';
  for (const invariant of invariants) {
    const { name, broken } = invariant;
    const bad = badOf(invariant).toUpperCase();
    for (const what of broken.slice(0, maxShown)) console.log(`${bad} ${name}: ${what}`);
    if (broken.length > maxShown) console.log(`${bad} ${name}: ${broken.length - maxShown} more`);
  }
  const lines = [
    ...figures,
    ...invariants.map((each) => [each.name, `${each.broken.length} ${badOf(each)} of ${each.checked}`] as const),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  for (const [name, value] of lines) console.log(`${name.padEnd(width)}  ${value}`);
  const holds = invariants.every((each) => each.broken.length === 0 || badOf(each) === 'lost');
  if (mayLose) console.log('note: this Redis may lose acknowledged writes; what is marked lost does not fail the run');
  if (!holds) console.log(`broken; repeat: npm run chaos -- --seed ${seed} --seconds ${seconds} --bytes ${bytes}`);
  else console.log(mayLose ? 'all required invariants hold' : 'all invariants hold');
  return holds;
}
