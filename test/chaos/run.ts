/** `npm run chaos`: a system under load in which things go wrong, and what clients saw of it. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { faultKinds } from './faults.ts';
import { report } from './report.ts';
import { runChaos } from './chaos.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '300' },
    seed: { type: 'string', default: String(Date.now() % 100_000) },
    faults: { type: 'string', default: Object.keys(faultKinds).join() },
    clients: { type: 'string', default: '12' },
    'fault-every': { type: 'string', default: '3' },
    everysec: { type: 'boolean', default: false },
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
  --everysec          measures what a power cut takes from a Redis with appendfsync everysec; proves nothing
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

async function main(): Promise<void> {
  if (values.help) {
    console.log(help);
    return;
  }
  const faults = values.faults.split(',').filter((name) => name !== '');
  const unknown = faults.filter((name) => !(name in faultKinds));
  if (unknown.length > 0)
    throw new Error(`--faults has ${unknown.join()}, expected some of ${Object.keys(faultKinds).join()}`);
  const options = {
    seconds: whole('seconds'),
    seed: whole('seed'),
    faults,
    clients: whole('clients'),
    faultEveryMs: 1000 * whole('fault-every'),
    fsync: values.everysec ? ('everysec' as const) : ('always' as const),
    shards: whole('shards'),
    older: values.older,
    out: values.out ?? mkdtempSync(join(tmpdir(), 'darkroom-chaos-run-')),
  };
  const holds = report(options, await runChaos(options));
  // What Redis may lose is no failure of ours, and no success either.
  process.exitCode = holds || values.everysec ? 0 : 1;
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await main();
