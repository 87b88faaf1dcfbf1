/** One run from its beginning to its end. */
import { setTimeout as delay } from 'node:timers/promises';
import { type AtRest, bytesAfterTtl, growthOf, untilSettled } from './at-rest.ts';
import { variantsOf } from './bodies.ts';
import { Client, undisturbed } from './clients.ts';
import { Dice } from './dice.ts';
import { makeTrouble } from './faults.ts';
import { forge } from './forger.ts';
import { History } from './history.ts';
import { startReceiver } from './receiver.ts';
import type { Fsync } from './redis.ts';
import { type ChaosSystem, startSystem } from './system.ts';

export interface ChaosOptions {
  seconds: number;
  seed: number;
  faults: readonly string[];
  clients: number;
  faultEveryMs: number;
  fsync: Fsync;
  /** Directory of the history and the log. */
  out: string;
  /** Of each model. */
  shards: number;
  /** A commit whose processes take part too. */
  older: string | undefined;
}

export interface ChaosResult {
  history: History;
  atRest: AtRest;
  logFile: string;
  /** Processes that ended and that nobody had ended. */
  surprises: readonly string[];
  redisStarts: number;
}

/** Deliveries that were refused or whose sender was killed come again within a minute and a half. */
const settleMs = 180_000;

export async function runChaos({
  seconds,
  seed,
  faults,
  clients: count,
  faultEveryMs,
  fsync,
  out,
  shards,
  older,
}: ChaosOptions): Promise<ChaosResult> {
  const history = new History();
  const beganAtMs = Date.now();
  const say = (what: string): void => console.error(`${Math.round((Date.now() - beganAtMs) / 1000)} s: ${what}`);
  const dice = new Dice(seed);
  const system = await startSystem({ fsync, out, shards, older });
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
    const load = Array.from({ length: count }, () => newClient().run(variants, over.signal));
    const forging = forge(system, history, over.signal);
    const trouble = makeTrouble(
      { system, dice: dice.fork(), history },
      { names: faults, everyMs: faultEveryMs, over: over.signal },
    );
    await Promise.race([delay(1000 * seconds), Promise.all([...load, forging])]);
    over.abort();
    say('what was asked for comes to its end');
    await Promise.all([...load, forging, trouble]);

    say('at rest?');
    const rest = await untilSettled(system.store, () => workersOf(system), settleMs);
    const end = await bytesAfterTtl(system.store);
    const surprises = system.members.flatMap((member) => member.surprises);
    return {
      history,
      atRest: { ...rest, bytes: growthOf(start, end) },
      logFile: system.logFile,
      surprises,
      redisStarts: system.redis.restarts,
    };
  } finally {
    receiver.stop();
    await system.stop();
  }
}

function workersOf({ members }: ChaosSystem): string[] {
  return members.flatMap(({ workers }) => workers.map(({ model, id }) => `${model} ${id}`));
}
