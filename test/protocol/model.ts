/**
 * The hand-over of requests to workers, as a specification: what stands in Redis, and what each script makes of it. Processes are not in it.
 * Whoever may say something says it at any moment, again, or never: so a crash, a pause, an answer that is lost and a
 * command that comes twice or late are all among what is explored. No clock either: deadlines and sweeps are actions.
 */
import {
  type Action,
  copyOf,
  freeOf,
  isServed,
  type Lease,
  maxAttempts,
  nothing,
  type Outcome,
  type Over,
  patienceOf,
  queueOf,
  type Request,
  slots,
  type State,
  type Terminal,
  type What,
  whats,
} from './state.ts';

export function apply(before: State, action: Action): Outcome {
  const turn: Outcome = { state: copyOf(before), reply: [], events: [], messages: [] };
  turn.reply = answer(turn, action);
  return turn;
}

function answer(turn: Outcome, action: Action): unknown[] {
  const { state } = turn;
  switch (action.do) {
    case 'admit':
    case 'admit-again':
    case 'admit-other':
      return admit(turn, action.request, action.do);
    case 'cancel':
      return cancel(turn, action.request);
    case 'expire':
      return expire(turn, action.request, action.over);
    case 'dispatch':
      return dispatch(turn, action);
    case 'write':
      return action.writes.map(([request, what]) => write(turn, { worker: action.worker, request, what }));
    case 'write-stale':
      return state.requests.flatMap(({ phase }) => whats.map(() => (phase === 'ended' ? 'ended' : 'lost')));
    case 'register':
      return register(turn, action);
    case 'heartbeat': {
      const worker = state.workers[action.worker];
      if (worker?.life !== action.life) return ['buried'];
      Object.assign(worker, { missed: 0, hasPace: action.hasPace });
      turn.messages.push([action.worker, null]);
      return ['alive'];
    }
    case 'stop':
    case 'leave':
    case 'drain':
    case 'resume':
    case 'ask-to-sleep':
      return lead(turn, action);
    case 'sweep':
    case 'sweep-again':
      return sweep(turn, action.do === 'sweep');
    case 'lapse-reservation':
      state.reserved = null;
      return [];
    case 'lapse-mark':
      state.marks[action.worker] = null;
      return [];
  }
}

function admit(turn: Outcome, id: number, how: 'admit' | 'admit-again' | 'admit-other'): unknown[] {
  const request = turn.state.requests[id]!;
  if (how === 'admit-other') return ['duplicate'];
  if (request.phase === 'none') {
    request.phase = 'queued';
    turn.events.push([id, 'queued']);
  }
  const position = queueOf(turn.state).indexOf(id);
  return ['admitted', Math.max(0, position), position < 0 || isServed(turn.state)];
}

function cancel(turn: Outcome, id: number): unknown[] {
  const request = turn.state.requests[id]!;
  if (request.phase === 'ended') return ['ended'];
  if (request.phase === 'queued') {
    end(turn, id, 'canceled');
    return ['canceled'];
  }
  if (!request.isCanceling) turn.messages.push([request.worker!, 'cancel']);
  request.isCanceling = true;
  return ['canceling'];
}

/** Once, for ever. A lease stays until its worker lets go. */
function end({ state, events }: Outcome, id: number, how: Terminal): void {
  state.requests[id] = { phase: 'ended', ...nothing };
  events.push([id, how]);
}

function isOver({ phase, hasRun }: Request, over: Over | 'none'): boolean {
  if (phase !== 'queued' && phase !== 'running') return false;
  return over === 'all' || (over === 'start' && !hasRun);
}

function expire(turn: Outcome, id: number, over: Over | 'none'): unknown[] {
  const request = turn.state.requests[id]!;
  if (!isOver(request, over)) return [];
  if (request.worker !== null) turn.messages.push([request.worker, 'cancel']);
  end(turn, id, 'expired');
  return [id];
}

function dispatch(turn: Outcome, { leases, reserve, late, own = [] }: Extract<Action, { do: 'dispatch' }>): unknown[] {
  const { state } = turn;
  if (reserve !== undefined && state.workers[reserve]?.mode === 'open') state.reserved = reserve;
  return leases.flatMap((lease) => {
    const worker = state.workers[lease.worker];
    const claim = slots + (lease.isAlone ? state.capacity : 0);
    let room = worker && takes(state, lease) ? freeOf(worker) : 0;
    const run: number[] = [];
    const replies = lease.requests.map((id) => {
      const request = state.requests[id]!;
      if (own.includes(id)) return 'leased';
      if (request.phase !== 'queued') return 'moved';
      if (late?.request === id && isOver(request, late.over)) {
        end(turn, id, 'expired');
        return 'expired';
      }
      if (room < 1) return 'waiting';
      room -= claim;
      run.push(id);
      worker!.leases[id] = claim;
      Object.assign(request, { phase: 'running', hasRun: true, attempts: request.attempts + 1, worker: lease.worker });
      turn.events.push([id, 'started']);
      return 'leased';
    });
    if (run.length > 0) turn.messages.push([lease.worker, `run ${run.join(' ')}`]);
    if (run.length > 0 && lease.isAlone) state.reserved = null;
    return replies;
  });
}

function takes(state: State, { worker: name, isAlone }: Lease): boolean {
  const { workers, reserved } = state;
  const worker = workers[name]!;
  if (worker.mode !== 'open' || worker.missed > patienceOf(state)) return false;
  return isAlone ? worker.leases.every((lease) => lease === null) : reserved !== name;
}

function write(
  turn: Outcome,
  { worker: name, request: id, what }: { worker: number; request: number; what: What },
): string {
  const request = turn.state.requests[id]!;
  const { leases } = turn.state.workers[name]!;
  // Its time was over: all that is left is to let go.
  if (request.phase !== 'running') {
    if (isLast(what)) leases[id] = null;
    return request.phase === 'ended' ? 'ended' : 'lost';
  }
  if (what === 'succeed' && !request.hasOutput) return 'incomplete';
  if (isLast(what)) leases[id] = null;
  switch (what) {
    case 'progress':
    case 'output':
      turn.events.push([id, what]);
      if (what === 'output') Object.assign(request, { hasOutput: true, hasAdvanced: true });
      break;
    case 'checkpoint':
      request.hasAdvanced = true;
      break;
    case 'old-checkpoint':
      break;
    case 'release':
      leases[id] = Math.max(0, leases[id]! - slots);
      break;
    case 'succeed':
    case 'fail':
    case 'drop':
      end(turn, id, ({ succeed: 'succeeded', fail: 'failed', drop: 'canceled' } as const)[what]);
      return 'finished';
    case 'give-back':
    case 'give-back-failed':
      return requeue(turn, id, what === 'give-back');
  }
  return request.isCanceling ? 'canceling' : 'written';
}

function isLast(what: What): boolean {
  return ['succeed', 'fail', 'drop', 'give-back', 'give-back-failed'].includes(what);
}

/** To the front of the queue. `isFree`: this is no attempt. */
function requeue(turn: Outcome, id: number, isFree: boolean): string {
  const request = turn.state.requests[id]!;
  if (request.isCanceling) {
    end(turn, id, 'canceled');
    return 'canceled';
  }
  if (isFree || request.hasAdvanced) request.attempts -= 1;
  else if (request.attempts >= maxAttempts) {
    end(turn, id, 'failed');
    return 'failed';
  }
  Object.assign(request, { phase: 'queued', worker: null, hasAdvanced: false });
  turn.events.push([id, 'queued']);
  return 'requeued';
}

/** Forgets a worker; what it had goes back. */
function remove(turn: Outcome, name: number, isFree: boolean): void {
  const { state } = turn;
  for (const [id, { worker }] of state.requests.entries()) if (worker === name) requeue(turn, id, isFree);
  state.workers[name] = null;
  turn.messages.push([name, null]);
  if (state.reserved === name) state.reserved = null;
}

function register(turn: Outcome, { worker: name, life, as }: Extract<Action, { do: 'register' }>): unknown[] {
  const { state } = turn;
  if (state.workers[name] && state.workers[name].life !== life) remove(turn, name, false);
  const fresh = {
    capacity: state.capacity,
    life,
    mode: 'open',
    isStopping: false,
    hasPace: false,
    leases: state.requests.map(() => null),
  } as const;
  const worker = (state.workers[name] ??= {
    ...fresh,
    isLoading: false,
    isAsleep: false,
    missed: 0,
    leases: [...fresh.leases],
  });
  const answer = worker.leases.some((lease) => lease !== null) ? 'leased' : 'registered';
  if (as === 'asleep' && answer === 'leased') return [answer];
  Object.assign(worker, { isLoading: as === 'loading', isAsleep: as === 'asleep', missed: 0 });
  if (state.marks[name] === life) {
    worker.mode = 'draining';
    state.marks[name] = null;
  } else if (worker.mode !== 'draining') worker.mode = as === 'loading' ? 'loading' : 'open';
  if (worker.mode !== 'open' && state.reserved === name) state.reserved = null;
  return [answer];
}

type Leading = Extract<Action, { do: 'stop' | 'leave' | 'drain' | 'resume' | 'ask-to-sleep' }>;

/** What a worker says of its end, and an operator of its leases. */
function lead(turn: Outcome, action: Leading): unknown[] {
  const { state } = turn;
  const worker = state.workers[action.worker];
  if (!worker || ('life' in action && action.life !== worker.life)) return ['unknown'];
  switch (action.do) {
    case 'leave':
      remove(turn, action.worker, true);
      return ['removed'];
    case 'ask-to-sleep':
      turn.messages.push([action.worker, 'sleep']);
      return ['asked'];
    case 'resume':
      if (worker.isStopping) return ['stopping'];
      if (worker.mode === 'draining') worker.mode = worker.isLoading ? 'loading' : 'open';
      return ['resumed'];
    case 'stop':
    case 'drain':
      worker.mode = 'draining';
      if (state.reserved === action.worker) state.reserved = null;
      if (action.do === 'stop') {
        worker.isStopping = true;
        turn.messages.push([action.worker, 'drained']);
      }
      return ['draining'];
  }
}

function sweep(turn: Outcome, isCounted: boolean): unknown[] {
  const { state } = turn;
  const buried: number[] = [];
  for (const [name, worker] of state.workers.entries()) {
    if (worker === null) continue;
    if (isCounted) worker.missed += 1;
    if (worker.missed <= state.missedSweeps) continue;
    if (worker.mode === 'draining' && !worker.isStopping) state.marks[name] = worker.life;
    remove(turn, name, false);
    buried.push(name);
  }
  return buried;
}
