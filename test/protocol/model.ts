/**
 * Specification of dispatch: the state in Redis, and the effect of each script on it. Processes are not modeled: any
 * command may come at any moment, repeatedly or never, which covers crashes, pauses, lost replies, and duplicate or
 * late commands. There is no clock either: passing deadlines and sweeps are actions.
 */
import {
  type Action,
  copyOf,
  freeOf,
  isServed,
  type Lease,
  maxAttempts,
  emptyRequest,
  type Outcome,
  type Deadline,
  maxMissedOf,
  queueOf,
  type Request,
  slots,
  type State,
  type Terminal,
  type WriteKind,
  writeKinds,
} from './state.ts';

export function apply(before: State, action: Action): Outcome {
  const outcome: Outcome = { state: copyOf(before), reply: [], events: [], messages: [] };
  outcome.reply = perform(outcome, action);
  return outcome;
}

function perform(outcome: Outcome, action: Action): unknown[] {
  const { state } = outcome;
  switch (action.do) {
    case 'admit':
    case 'admit-again':
    case 'admit-other':
      return admit(outcome, action.request, action.do);
    case 'cancel':
      return cancel(outcome, action.request);
    case 'expire':
      return expire(outcome, action.request, action.deadline);
    case 'dispatch':
      return dispatch(outcome, action);
    case 'write':
      return action.writes.map(([request, kind]) => write(outcome, { worker: action.worker, request, kind }));
    case 'write-stale':
      return state.requests.flatMap(({ phase }) => writeKinds.map(() => (phase === 'ended' ? 'ended' : 'lost')));
    case 'register':
      return register(outcome, action);
    case 'heartbeat': {
      const worker = state.workers[action.worker];
      if (worker?.life !== action.life) return ['reaped'];
      Object.assign(worker, { missed: 0, hasPace: action.hasPace });
      outcome.messages.push([action.worker, null]);
      return ['alive'];
    }
    case 'stop':
    case 'leave':
    case 'drain':
    case 'resume':
    case 'ask-to-sleep':
      return control(outcome, action);
    case 'sweep':
    case 'sweep-again':
      return sweep(outcome, action.do === 'sweep');
    case 'lapse-reservation':
      state.reserved = null;
      return [];
    case 'lapse-mark':
      state.marks[action.worker] = null;
      return [];
  }
}

function admit(outcome: Outcome, id: number, how: 'admit' | 'admit-again' | 'admit-other'): unknown[] {
  const request = outcome.state.requests[id]!;
  if (how === 'admit-other') return ['duplicate'];
  if (request.phase === 'none') {
    request.phase = 'queued';
    outcome.events.push([id, 'queued']);
  }
  const position = queueOf(outcome.state).indexOf(id);
  return ['admitted', Math.max(0, position), position < 0 || isServed(outcome.state)];
}

function cancel(outcome: Outcome, id: number): unknown[] {
  const request = outcome.state.requests[id]!;
  if (request.phase === 'ended') return ['ended'];
  if (request.phase === 'queued') {
    end(outcome, id, 'canceled');
    return ['canceled'];
  }
  if (!request.isCanceling) outcome.messages.push([request.worker!, 'cancel']);
  request.isCanceling = true;
  return ['canceling'];
}

/** Ends a request, once. Its lease stays until its worker releases it. */
function end({ state, events }: Outcome, id: number, how: Terminal): void {
  state.requests[id] = { phase: 'ended', ...emptyRequest };
  events.push([id, how]);
}

function hasPassed({ phase, hasRun }: Request, deadline: Deadline | 'none'): boolean {
  if (phase !== 'queued' && phase !== 'running') return false;
  return deadline === 'all' || (deadline === 'start' && !hasRun);
}

function expire(outcome: Outcome, id: number, deadline: Deadline | 'none'): unknown[] {
  const request = outcome.state.requests[id]!;
  if (!hasPassed(request, deadline)) return [];
  if (request.worker !== null) outcome.messages.push([request.worker, 'cancel']);
  end(outcome, id, 'expired');
  return [id];
}

function dispatch(
  outcome: Outcome,
  { leases, reserve, passed, own = [] }: Extract<Action, { do: 'dispatch' }>,
): unknown[] {
  const { state } = outcome;
  if (reserve !== undefined && state.workers[reserve]?.mode === 'open') state.reserved = reserve;
  return leases.flatMap((lease) => {
    const worker = state.workers[lease.worker];
    const claim = slots + (lease.isExclusive ? state.capacity : 0);
    let free = worker && takes(state, lease) ? freeOf(worker) : 0;
    const run: number[] = [];
    const replies = lease.requests.map((id) => {
      const request = state.requests[id]!;
      if (own.includes(id)) return 'leased';
      if (request.phase !== 'queued') return 'moved';
      if (passed?.request === id && hasPassed(request, passed.deadline)) {
        end(outcome, id, 'expired');
        return 'expired';
      }
      if (free < 1) return 'waiting';
      free -= claim;
      run.push(id);
      worker!.leases[id] = claim;
      Object.assign(request, { phase: 'running', hasRun: true, attempts: request.attempts + 1, worker: lease.worker });
      outcome.events.push([id, 'started']);
      return 'leased';
    });
    if (run.length > 0) outcome.messages.push([lease.worker, `run ${run.join(' ')}`]);
    if (run.length > 0 && lease.isExclusive) state.reserved = null;
    return replies;
  });
}

function takes(state: State, { worker: name, isExclusive }: Lease): boolean {
  const { workers, reserved } = state;
  const worker = workers[name]!;
  if (worker.mode !== 'open' || worker.missed > maxMissedOf(state)) return false;
  return isExclusive ? worker.leases.every((lease) => lease === null) : reserved !== name;
}

function write(
  outcome: Outcome,
  { worker: name, request: id, kind }: { worker: number; request: number; kind: WriteKind },
): string {
  const request = outcome.state.requests[id]!;
  const { leases } = outcome.state.workers[name]!;
  // The request has ended otherwise: the worker only releases the lease.
  if (request.phase !== 'running') {
    if (isLast(kind)) leases[id] = null;
    return request.phase === 'ended' ? 'ended' : 'lost';
  }
  if (kind === 'succeed' && !request.hasOutput) return 'incomplete';
  if (isLast(kind)) leases[id] = null;
  switch (kind) {
    case 'progress':
    case 'output':
      outcome.events.push([id, kind]);
      if (kind === 'output') Object.assign(request, { hasOutput: true, hasAdvanced: true });
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
      end(outcome, id, ({ succeed: 'succeeded', fail: 'failed', drop: 'canceled' } as const)[kind]);
      return 'finished';
    case 'give-back':
    case 'give-back-failed':
      return requeue(outcome, id, kind === 'give-back');
  }
  return request.isCanceling ? 'canceling' : 'written';
}

function isLast(kind: WriteKind): boolean {
  return ['succeed', 'fail', 'drop', 'give-back', 'give-back-failed'].includes(kind);
}

/** Moves a request to the front of the queue. `isFree`: does not count as an attempt. */
function requeue(outcome: Outcome, id: number, isFree: boolean): string {
  const request = outcome.state.requests[id]!;
  if (request.isCanceling) {
    end(outcome, id, 'canceled');
    return 'canceled';
  }
  if (isFree || request.hasAdvanced) request.attempts -= 1;
  else if (request.attempts >= maxAttempts) {
    end(outcome, id, 'failed');
    return 'failed';
  }
  Object.assign(request, { phase: 'queued', worker: null, hasAdvanced: false });
  outcome.events.push([id, 'queued']);
  return 'requeued';
}

/** Deletes a worker and requeues its requests. */
function remove(outcome: Outcome, name: number, isFree: boolean): void {
  const { state } = outcome;
  for (const [id, { worker }] of state.requests.entries()) if (worker === name) requeue(outcome, id, isFree);
  state.workers[name] = null;
  outcome.messages.push([name, null]);
  if (state.reserved === name) state.reserved = null;
}

function register(outcome: Outcome, { worker: name, life, as }: Extract<Action, { do: 'register' }>): unknown[] {
  const { state } = outcome;
  if (state.workers[name] && state.workers[name].life !== life) remove(outcome, name, false);
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
  const status = worker.leases.some((lease) => lease !== null) ? 'leased' : 'registered';
  if (as === 'asleep' && status === 'leased') return [status];
  Object.assign(worker, { isLoading: as === 'loading', isAsleep: as === 'asleep', missed: 0 });
  if (state.marks[name] === life) {
    worker.mode = 'draining';
    state.marks[name] = null;
  } else if (worker.mode !== 'draining') worker.mode = as === 'loading' ? 'loading' : 'open';
  if (worker.mode !== 'open' && state.reserved === name) state.reserved = null;
  return [status];
}

type Control = Extract<Action, { do: 'stop' | 'leave' | 'drain' | 'resume' | 'ask-to-sleep' }>;

/** Applies the commands of a stopping worker and of operators. */
function control(outcome: Outcome, action: Control): unknown[] {
  const { state } = outcome;
  const worker = state.workers[action.worker];
  if (!worker || ('life' in action && action.life !== worker.life)) return ['unknown'];
  switch (action.do) {
    case 'leave':
      remove(outcome, action.worker, true);
      return ['removed'];
    case 'ask-to-sleep':
      outcome.messages.push([action.worker, 'sleep']);
      return ['sent'];
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
        outcome.messages.push([action.worker, 'drained']);
      }
      return ['draining'];
  }
}

function sweep(outcome: Outcome, isCounted: boolean): unknown[] {
  const { state } = outcome;
  const reaped: number[] = [];
  for (const [name, worker] of state.workers.entries()) {
    if (worker === null) continue;
    if (isCounted) worker.missed += 1;
    if (worker.missed <= state.missedSweeps) continue;
    if (worker.mode === 'draining' && !worker.isStopping) state.marks[name] = worker.life;
    remove(outcome, name, false);
    reaped.push(name);
  }
  return reaped;
}
