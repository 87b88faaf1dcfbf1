/** Runs the system under load and faults, waits until it is idle again, and collects what the checker needs. */
import { setMaxListeners } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type AtRest, bytesAfterTtl, growthOf, readInvalidLogs, untilEmpty, untilSettled } from './check/at-rest.ts';
import type { Plan } from './check/check.ts';
import { crashesIn } from './check/crashes.ts';
import { attack } from './clients/attacker.ts';
import { variantsOf } from './clients/bodies.ts';
import { Client, referencePlan } from './clients/client.ts';
import { forge } from './clients/forger.ts';
import { startReceiver } from './clients/receiver.ts';
import { Dice } from './dice.ts';
import { makeTrouble, possibleKinds } from './faults/make-trouble.ts';
import { History } from './history.ts';
import type { BytesBackend } from './system/byte-store.ts';
import type { Failover } from './system/failover.ts';
import type { Fsync } from './system/redis.ts';
import { resultTtlMs } from './system/settings.ts';
import { type ChaosSystem, startSystem } from './system/system.ts';

export interface ChaosOptions {
  seconds: number;
  seed: number;
  faults: readonly string[];
  clients: number;
  faultEveryMs: number;
  redis: Fsync | Failover;
  /** Store for images. */
  bytes: BytesBackend;
  /** Directory for the history and the log. */
  out: string;
  /** Number of shards per model. */
  shards: number;
  /** Commit of an older version whose processes also take part. */
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

/** Webhooks that were refused or whose sender was killed are retried within a minute and a half. */
const settleMs = 180_000;
/** Interval between progress lines. */
const progressMs = 30_000;
/** On a very slow machine, each client must still complete one request in this time, s. */
const maxRequestS = 30;

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
  const logProgress = (what: string): void =>
    console.error(`${Math.round((Date.now() - beganAtMs) / 1000)} s: ${what}`);
  const dice = new Dice(seed);
  const system = await startSystem({ ...of, out, history });
  const receiver = await startReceiver(history, dice.fork());
  try {
    logProgress('all processes are ready; running each variant once');
    const variants = variantsOf(dice.fork());
    const newClient = (): Client =>
      new Client({ history, dice: dice.fork(), urls: system.urls, webhookUrl: receiver.url });
    // Reference outputs: made before the first fault, and compared with all later outputs.
    const all = [...variants.values()].flat();
    await Promise.all(all.map((variant) => newClient().request(referencePlan(variant))));
    logProgress('waiting until the system is idle');
    await untilSettled(system.store, () => workersOf(system), settleMs);
    const start = await bytesAfterTtl(system.store);

    logProgress(`injecting faults for ${seconds} s`);
    const over = new AbortController();
    // Every scheduled late read listens to this signal.
    setMaxListeners(0, over.signal);
    const load = Array.from({ length: count }, () => newClient().run(variants, over.signal));
    const forging = forge(system, history, over.signal);
    const attacking = attack({ urls: system.urls, dice: dice.fork(), history }, over.signal);
    const names = possibleKinds(system, faults);
    const trouble = makeTrouble(
      { system, dice: dice.fork(), history },
      { names, everyMs: faultEveryMs, over: over.signal },
    );
    const progressTimer = setInterval(() => logProgress(progressOf(history)), progressMs);
    await Promise.race([delay(1000 * seconds), Promise.all([...load, forging, attacking, trouble])]);
    clearInterval(progressTimer);
    over.abort();
    logProgress('waiting for open requests');
    await Promise.all([...load, forging, attacking, trouble]);

    logProgress('waiting until the system is idle');
    const rest = await untilSettled(system.store, () => workersOf(system), settleMs);
    const invalidLogs = await readInvalidLogs(system.store);
    const end = await bytesAfterTtl(system.store);
    const files = await untilEmpty(system.bytes.files, 2 * resultTtlMs);
    for (const crash of crashesIn(readFileSync(system.logFile, 'utf8'))) history.add({ what: 'crash', ...crash });
    await history.close();
    return {
      history,
      historyFile,
      atRest: { ...rest, invalidLogs, files, bytes: growthOf(start, end) },
      plan: { requests: Math.floor((count * seconds) / maxRequestS), models: [...variants.keys()], faults: names },
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
