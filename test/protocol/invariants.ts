/** Invariants of the dispatch protocol; `explore` checks them on every state and transition of the model. */
import { type Action, freeOf, listOf, maxAttempts, type Outcome, type State } from './state.ts';

const terminalTypes = new Set(['succeeded', 'failed', 'canceled', 'expired']);

/** Returns the invariants that a state violates. */
export function brokenIn({ requests, workers, marks, reserved }: State): string[] {
  const broken: string[] = [];
  const must = (holds: boolean, invariant: string): void => void (holds || broken.push(invariant));
  for (const [id, { phase, worker, attempts }] of requests.entries()) {
    const holders = workers.flatMap((each, name) => (each?.leases[id] == null ? [] : [name]));
    must(
      phase !== 'running' || (holders.length === 1 && holders[0] === worker),
      'a running request has exactly one lease, on its worker',
    );
    must(phase === 'running' || phase === 'ended' || holders.length === 0, 'a queued request has no lease');
    must(phase === 'running' || worker === null, 'only a running request has a worker');
    must(attempts >= 0 && attempts <= maxAttempts, 'attempts are between 0 and the maximum');
    must(phase !== 'running' || attempts > 0, 'a running request has at least one attempt');
  }
  for (const [name, worker] of workers.entries()) {
    if (worker === null) continue;
    const isLeased = worker.leases.some((lease) => lease !== null);
    must(listOf(worker) !== 'asleep' || freeOf(worker) > 0, 'a sleeping worker has free slots');
    must(listOf(worker) !== 'busy' || isLeased, 'a busy worker has leases');
    must(marks[name] !== worker.life, 'a registered incarnation has no drain mark');
  }
  must(reserved === null || workers[reserved]?.mode === 'open', 'a reserved worker is open for leases');
  return broken;
}

/** Returns the invariants that a transition violates. */
export function brokenBy(before: State, action: Action, { state, events }: Outcome): string[] {
  const broken: string[] = [];
  const must = (holds: boolean, invariant: string): void => void (holds || broken.push(invariant));
  for (const [id, { phase }] of before.requests.entries()) {
    const after = state.requests[id]!;
    const types = events.flatMap(([request, type]) => (request === id ? [type] : []));
    const terminals = types.filter((type) => terminalTypes.has(type)).length;
    must(phase === 'none' || after.phase !== 'none', 'an admitted request is never lost');
    must(phase !== 'ended' || (after.phase === 'ended' && types.length === 0), 'no event follows the terminal event');
    must(terminals === (phase !== 'ended' && after.phase === 'ended' ? 1 : 0), 'an end emits one terminal event');
    must(terminals === 0 || terminalTypes.has(types.at(-1)!), 'the terminal event is the last one');
    must(after.phase === 'running' || phase !== 'running' || types.length > 0, 'a requeue or end emits an event');
    must(phase === 'running' || after.phase !== 'running' || types[0] === 'started', 'a start emits `started` first');
  }
  const isSame = JSON.stringify(before) === JSON.stringify(state) && events.length === 0;
  must(action.do !== 'write-stale' || isSame, 'a stale token writes nothing');
  must(!action.do.startsWith('admit-') || isSame, 'a second submit changes nothing');
  return broken;
}
