/** `npm run chaos`: a system under load in which things go wrong, and what clients saw of it. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';
import { Dice } from './dice.ts';
import { faultKinds } from './faults/fault-kinds.ts';
import { report } from './report.ts';
import { bytesPlaces } from './system/byte-store.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    faults: { type: 'string', default: Object.keys(faultKinds).join() },
    clients: { type: 'string', default: '12' },
    'fault-every': { type: 'string', default: '3' },
    redis: { type: 'string', default: 'always' },
    bytes: { type: 'string' },
    older: { type: 'string' },
    shards: { type: 'string', default: '1' },
    out: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

const help = `npm run chaos -- [options]

  --seconds 300       how long things go wrong
  --seed 7            what goes wrong when; without it another one each time
  --faults kill,stop  of those below; all otherwise
  --clients 12        how many ask at the same time
  --fault-every 3     seconds from one fault to the next, in the mean
  --redis always      everysec, sentinel, cluster: measures what a power cut takes from a Redis with appendfsync everysec, and what
                      a failover takes; of what clients saw it proves nothing then
  --bytes redis       directory, s3: where pictures are kept; otherwise the seed says
  --shards 1          that each model has
  --older commit      built beside this one, for processes of two versions side by side
  --out directory     where the history and the log are written

${Object.entries(faultKinds)
  .map(([name, { about }]) => `  ${name.padEnd(9)} ${about}`)
  .join('\n')}`;

function whole(name: 'seconds' | 'seed' | 'clients' | 'fault-every' | 'shards'): number {
  const value = Number(values[name]);
  if (Number.isFinite(value) && value >= 0) return value;
  throw new Error(`--${name} is ${values[name]}, expected a number`);
}

function oneOf<Choice extends string>(name: string, choices: readonly Choice[], value: string): Choice {
  const choice = choices.find((each) => each === value);
  if (choice !== undefined) return choice;
  throw new Error(`--${name} is ${value}, expected one of ${choices.join()}`);
}

async function main(): Promise<void> {
  if (values.help) {
    console.log(help);
    return;
  }
  const faults = values.faults.split(',').filter((name) => name !== '');
  const unknown = faults.filter((name) => !(name in faultKinds));
  if (unknown.length > 0)
    throw new Error(`--faults has ${unknown.join()}, expected some of ${Object.keys(faultKinds).join()}`);
  const seed = whole('seed');
  const options = {
    seconds: whole('seconds'),
    seed,
    faults,
    clients: whole('clients'),
    faultEveryMs: 1000 * whole('fault-every'),
    redis: oneOf('redis', ['always', 'everysec', 'sentinel', 'cluster'], values.redis),
    // An older version may know of no other place.
    bytes: oneOf('bytes', bytesPlaces, values.bytes ?? (values.older ? 'redis' : new Dice(seed).pick(bytesPlaces))),
    shards: whole('shards'),
    older: values.older,
    out: values.out ?? mkdtempSync(join(tmpdir(), 'darkroom-chaos-run-')),
  };
  process.exitCode = report(options, await runChaos(options)) ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await main();
