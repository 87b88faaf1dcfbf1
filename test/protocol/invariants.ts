/** What must hold whatever happens. */
import { type Action, freeOf, listOf, maxAttempts, type Outcome, type State } from './state.ts';

const ends = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** Of a state. */
export function brokenIn({ requests, workers, marks, reserved }: State): string[] {
  const broken: string[] = [];
  const must = (holds: boolean, what: string): void => void (holds || broken.push(what));
  for (const [id, { phase, worker, attempts }] of requests.entries()) {
    const holders = workers.flatMap((each, name) => (each?.leases[id] == null ? [] : [name]));
    must(
      phase !== 'running' || (holders.length === 1 && holders[0] === worker),
      'what runs is leased once, to who runs it',
    );
    must(phase === 'running' || phase === 'ended' || holders.length === 0, 'what waits is leased to nobody');
    must(phase === 'running' || worker === null, 'what does not run has no worker');
    must(attempts >= 0 && attempts <= maxAttempts, 'attempts are counted');
    must(phase !== 'running' || attempts > 0, 'what runs is an attempt');
  }
  for (const [name, worker] of workers.entries()) {
    if (worker === null) continue;
    const isLeased = worker.leases.some((lease) => lease !== null);
    must(listOf(worker) !== 'asleep' || freeOf(worker) > 0, 'who sleeps has room');
    must(listOf(worker) !== 'busy' || isLeased, 'who is busy has leases');
    must(marks[name] !== worker.life, 'who is marked as drained is drained when it comes again');
  }
  must(reserved === null || workers[reserved]?.mode === 'open', 'who is reserved takes leases');
  return broken;
}

/** Of a transition. */
export function brokenBy(before: State, action: Action, { state, events }: Outcome): string[] {
  const broken: string[] = [];
  const must = (holds: boolean, what: string): void => void (holds || broken.push(what));
  for (const [id, { phase }] of before.requests.entries()) {
    const after = state.requests[id]!;
    const types = events.flatMap(([request, type]) => (request === id ? [type] : []));
    const ended = types.filter((type) => ends.has(type)).length;
    must(phase === 'none' || after.phase !== 'none', 'what was acknowledged is never lost');
    must(phase !== 'ended' || (after.phase === 'ended' && types.length === 0), 'nothing comes after the end');
    must(ended === (phase !== 'ended' && after.phase === 'ended' ? 1 : 0), 'an end is told once');
    must(ended === 0 || ends.has(types.at(-1)!), 'the end is told last');
    must(after.phase === 'running' || phase !== 'running' || types.length > 0, 'who waits again or ended is told');
    must(phase === 'running' || after.phase !== 'running' || types[0] === 'started', 'who starts is told');
  }
  const isSame = JSON.stringify(before) === JSON.stringify(state) && events.length === 0;
  must(action.do !== 'write-stale' || isSame, 'a stale token writes nothing');
  must(!action.do.startsWith('admit-') || isSame, 'a second submit changes nothing');
  return broken;
}
