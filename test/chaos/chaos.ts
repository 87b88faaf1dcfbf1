/** One run from its beginning to its end. */
import { setMaxListeners } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type AtRest, bytesAfterTtl, growthOf, readEndless, untilNone, untilSettled } from './check/at-rest.ts';
import type { Plan } from './check/check.ts';
import { crashesIn } from './check/crashes.ts';
import { variantsOf } from './clients/bodies.ts';
import { Client, undisturbed } from './clients/client.ts';
import { forge } from './clients/forger.ts';
import { startReceiver } from './clients/receiver.ts';
import { Dice } from './dice.ts';
import { makeTrouble, possibleKinds } from './faults/make-trouble.ts';
import { History } from './history.ts';
import type { BytesPlace } from './system/byte-store.ts';
import type { Failover } from './system/failover.ts';
import type { Fsync } from './system/redis.ts';
import { keptMs } from './system/settings.ts';
import { type ChaosSystem, startSystem } from './system/system.ts';

export interface ChaosOptions {
  seconds: number;
  seed: number;
  faults: readonly string[];
  clients: number;
  faultEveryMs: number;
  redis: Fsync | Failover;
  /** Where pictures are kept. */
  bytes: BytesPlace;
  /** Directory of the history and the log. */
  out: string;
  /** Of each model. */
  shards: number;
  /** A commit whose processes take part too. */
  older: string | undefined;
}

export interface ChaosResult {
  history: History;
  historyFile: string;
  atRest: AtRest;
  plan: Plan;
  logFile: string;
  redisStarts: number;
}

/** Deliveries that were refused or whose sender was killed come again within a minute and a half. */
const settleMs = 180_000;
/** From one line that says how far it is to the next. */
const sayMs = 30_000;
/** Each client is to have at least one request in so long, on a machine that is short of everything, s. */
const slowestS = 30;

export async function runChaos({
  seconds,
  seed,
  faults,
  clients: count,
  faultEveryMs,
  out,
  ...of
}: ChaosOptions): Promise<ChaosResult> {
  mkdirSync(out, { recursive: true });
  const historyFile = join(out, 'history.jsonl');
  const history = new History(historyFile);
  const beganAtMs = Date.now();
  const say = (what: string): void => console.error(`${Math.round((Date.now() - beganAtMs) / 1000)} s: ${what}`);
  const dice = new Dice(seed);
  const system = await startSystem({ ...of, out, history });
  const receiver = await startReceiver(history, dice.fork());
  try {
    say('all processes are there; each variant is made once');
    const variants = variantsOf(dice.fork());
    const newClient = (): Client =>
      new Client({ history, dice: dice.fork(), urls: system.urls, webhookUrl: receiver.url });
    // Nothing has failed yet: what is seen now is what all else is compared with.
    const all = [...variants.values()].flat();
    await Promise.all(all.map((variant) => newClient().request(undisturbed(variant))));
    say('at rest?');
    await untilSettled(system.store, () => workersOf(system), settleMs);
    const start = await bytesAfterTtl(system.store);

    say(`things go wrong for ${seconds} s`);
    const over = new AbortController();
    // All that is to be read late waits on it.
    setMaxListeners(0, over.signal);
    const load = Array.from({ length: count }, () => newClient().run(variants, over.signal));
    const forging = forge(system, history, over.signal);
    const names = possibleKinds(system, faults);
    const trouble = makeTrouble(
      { system, dice: dice.fork(), history },
      { names, everyMs: faultEveryMs, over: over.signal },
    );
    const saying = setInterval(() => say(progressOf(history)), sayMs);
    await Promise.race([delay(1000 * seconds), Promise.all([...load, forging, trouble])]);
    clearInterval(saying);
    over.abort();
    say('what was asked for comes to its end');
    await Promise.all([...load, forging, trouble]);

    say('at rest?');
    const rest = await untilSettled(system.store, () => workersOf(system), settleMs);
    const endless = await readEndless(system.store);
    const end = await bytesAfterTtl(system.store);
    const files = await untilNone(system.bytes.files, 2 * keptMs);
    for (const crash of crashesIn(readFileSync(system.logFile, 'utf8'))) history.add({ what: 'crash', ...crash });
    await history.close();
    return {
      history,
      historyFile,
      atRest: { ...rest, endless, files, bytes: growthOf(start, end) },
      plan: { requests: Math.floor((count * seconds) / slowestS), models: [...variants.keys()], faults: names },
      logFile: system.logFile,
      redisStarts: system.redis.restarts,
    };
  } finally {
    receiver.stop();
    await system.stop();
  }
}

function progressOf(history: History): string {
  const counts = (['submit', 'event', 'output', 'webhook', 'fault', 'crash', 'gave-up'] as const).map(
    (what) => `${what} ${history.count(what)}`,
  );
  return `${counts.join(', ')}; ${Math.round(process.memoryUsage.rss() / 2 ** 20)} MB`;
}

function workersOf({ members }: ChaosSystem): string[] {
  return members.flatMap(({ workers }) => workers.map(({ model, id }) => `${model} ${id}`));
}
