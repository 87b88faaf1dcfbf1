/** `npm run chaos`: runs a system under load, injects faults, and checks what clients saw. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runChaos } from './chaos.ts';
import { Dice } from './dice.ts';
import { faultKinds } from './faults/fault-kinds.ts';
import { report } from './report.ts';
import { bytesBackends } from './system/byte-store.ts';

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

  --seconds 300       duration of fault injection
  --seed 7            seed of faults and requests (default: random)
  --faults kill,stop  fault kinds from the list below (default: all)
  --clients 12        number of concurrent clients
  --fault-every 3     mean seconds between faults
  --redis always      appendfsync always; or everysec (power cuts), sentinel, cluster (failovers): Redis then loses
                      writes, and invariants that this breaks are reported as lost without failing the run
  --bytes redis       store for images: redis, directory or s3 (default: by seed)
  --shards 1          shards per model
  --older commit      also run processes of this older version
  --out directory     directory for the history and the log

${Object.entries(faultKinds)
  .map(([name, { about }]) => `  ${name.padEnd(9)} ${about}`)
  .join('\n')}`;

function parseNumber(name: 'seconds' | 'seed' | 'clients' | 'fault-every' | 'shards'): number {
  const value = Number(values[name]);
  if (Number.isFinite(value) && value >= 0) return value;
  throw new Error(`--${name} is ${values[name]}, expected a number`);
}

function parseChoice<Choice extends string>(name: string, choices: readonly Choice[], value: string): Choice {
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
  const seed = parseNumber('seed');
  const options = {
    seconds: parseNumber('seconds'),
    seed,
    faults,
    clients: parseNumber('clients'),
    faultEveryMs: 1000 * parseNumber('fault-every'),
    redis: parseChoice('redis', ['always', 'everysec', 'sentinel', 'cluster'], values.redis),
    bytes: parseChoice('bytes', bytesBackends, values.bytes ?? new Dice(seed).pick(bytesBackends)),
    shards: parseNumber('shards'),
    older: values.older,
    out: values.out ?? mkdtempSync(join(tmpdir(), 'darkroom-chaos-run-')),
  };
  process.exitCode = report(options, await runChaos(options)) ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await main();
