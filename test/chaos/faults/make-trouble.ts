/** Injects faults at random. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';
import type { ChaosSystem } from '../system/system.ts';
import { faultKinds, type Scene, type Work } from './fault-kinds.ts';

/** Fault kinds that hit Redis. */
const redisKinds = new Set(['redis', 'pubsub', 'scripts', 'disk']);
/** Fault kinds that hit no member. */
const globalKinds = new Set([...redisKinds, 'store', 'upstream']);
/** Returns the group of a fault kind; of each group, only one fault runs at a time. */
const groupOf = (kind: string): string => (redisKinds.has(kind) ? 'redis' : kind);
/** Maximum number of faults at once. */
const maxConcurrent = 3;

/** Returns the fault kinds that this machine and system support. */
export function possibleKinds(system: ChaosSystem, names: readonly string[]): string[] {
  return names.filter((name) => faultKinds[name]!.isPossible?.(system) ?? true);
}

/**
 * Injects a fault about every `everyMs` until the signal aborts, each kind once before any repeats. Resolves when the
 * last fault is over.
 */
export async function makeTrouble(
  scene: Scene,
  { names, everyMs, over }: { names: readonly string[]; everyMs: number; over: AbortSignal },
): Promise<void> {
  const { system, dice, history } = scene;
  const running = new Map<Promise<void>, string>();
  const remaining = new Set(names);
  while (!over.aborted && names.length > 0) {
    await delay(everyMs * (0.3 + 1.4 * dice.next()), undefined, { signal: over }).catch(() => {});
    const name = choose(remaining.size > 0 ? [...remaining] : names, dice);
    const { run, canHit = () => true } = faultKinds[name]!;
    const free = system.members.filter((member) => !member.hasFault && member.isRunning && canHit(member));
    const isTaken = globalKinds.has(name) && [...running.values()].some((each) => groupOf(each) === groupOf(name));
    const member = dice.pick(free);
    if (over.aborted || member === undefined || running.size >= maxConcurrent || isTaken) continue;
    if (!globalKinds.has(name)) member.hasFault = true;
    const hit = (target: string, work?: Work): void => {
      remaining.delete(name);
      history.add({ what: 'fault', fault: name, target, ...work });
    };
    const fault: Promise<void> = run(scene, member, hit)
      // For example because Redis was unavailable.
      .catch((error: unknown) => history.add({ what: 'fault', fault: name, target: `not possible: ${String(error)}` }))
      .finally(() => {
        if (!globalKinds.has(name)) member.hasFault = false;
        running.delete(fault);
      });
    running.set(fault, name);
  }
  await Promise.all(running.keys());
}

/** Picks a kind at random by weight. */
function choose(names: readonly string[], dice: Dice): string {
  let at = dice.next() * names.reduce((sum, name) => sum + faultKinds[name]!.weight, 0);
  return names.find((each) => (at -= faultKinds[each]!.weight) < 0) ?? names[0]!;
}
