/** Has things go wrong, by the dice. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../dice.ts';
import type { ChaosSystem } from '../system/system.ts';
import { faultKinds, type Scene, type Work } from './fault-kinds.ts';

/** Those that are about no process of the members'. */
const ofRedis = new Set(['redis', 'pubsub', 'scripts', 'disk']);
const ofNobody = new Set([...ofRedis, 'store', 'upstream']);
/** What has one trouble at a time; that of Redis is everybody's. */
const whatOf = (kind: string): string => (ofRedis.has(kind) ? 'redis' : kind);
/** Together at once. */
const most = 3;

/** Kinds that this machine and this system can have. */
export function possibleKinds(system: ChaosSystem, names: readonly string[]): string[] {
  return names.filter((name) => faultKinds[name]!.isPossible?.(system) ?? true);
}

/** Has things go wrong, one about every `everyMs`, each kind once before any comes again, until the signal; resolves when the last of them is over. */
export async function makeTrouble(
  scene: Scene,
  { names, everyMs, over }: { names: readonly string[]; everyMs: number; over: AbortSignal },
): Promise<void> {
  const { system, dice, history } = scene;
  const running = new Map<Promise<void>, string>();
  const owed = new Set(names);
  while (!over.aborted && names.length > 0) {
    await delay(everyMs * (0.3 + 1.4 * dice.next()), undefined, { signal: over }).catch(() => {});
    const name = choose(owed.size > 0 ? [...owed] : names, dice);
    const { run, isAbout = () => true } = faultKinds[name]!;
    const free = system.members.filter((member) => !member.isBusy && member.isRunning && isAbout(member));
    const isTaken = ofNobody.has(name) && [...running.values()].some((each) => whatOf(each) === whatOf(name));
    const member = dice.pick(free);
    if (over.aborted || member === undefined || running.size >= most || isTaken) continue;
    if (!ofNobody.has(name)) member.isBusy = true;
    const hit = (target: string, work?: Work): void => {
      owed.delete(name);
      history.add({ what: 'fault', fault: name, target, ...work });
    };
    const fault: Promise<void> = run(scene, member, hit)
      // Redis was away, for one.
      .catch((error: unknown) => history.add({ what: 'fault', fault: name, target: `not possible: ${String(error)}` }))
      .finally(() => {
        if (!ofNobody.has(name)) member.isBusy = false;
        running.delete(fault);
      });
    running.set(fault, name);
  }
  await Promise.all(running.keys());
}

/** By weight. */
function choose(names: readonly string[], dice: Dice): string {
  let at = dice.next() * names.reduce((sum, name) => sum + faultKinds[name]!.weight, 0);
  return names.find((each) => (at -= faultKinds[each]!.weight) < 0) ?? names[0]!;
}
