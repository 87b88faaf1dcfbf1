/** The modeled state: the part of Redis that decides how dispatch goes on, and the actions on it. */

/** Slots of each request. */
export const slots = 2;
export const maxAttempts = 2;

export type Life = 1 | 2;
export type Terminal = 'succeeded' | 'failed' | 'canceled' | 'expired';

export interface Request {
  phase: 'none' | 'queued' | 'running' | 'ended';
  /** It was leased before: it is queued in front of all that never were, and its start deadline does not apply. */
  hasRun: boolean;
  attempts: number;
  /** It advanced further than ever since its last lease. */
  hasAdvanced: boolean;
  hasOutput: boolean;
  /** It is being canceled. */
  isCanceling: boolean;
  /** The worker that runs it. */
  worker: number | null;
}

export interface Worker {
  capacity: number;
  life: Life;
  mode: 'open' | 'loading' | 'draining';
  isLoading: boolean;
  isAsleep: boolean;
  isStopping: boolean;
  hasPace: boolean;
  /** Sweeps since its last heartbeat. */
  missed: number;
  /**
   * By request: slots of its lease; 0 if all are released, but the request is still requeued when the worker is reaped.
   */
  leases: (number | null)[];
}

export interface State {
  /**
   * Slots of every worker: 2 hold one request; with 3, a second one may exceed the capacity, so that `free` is
   * negative.
   */
  capacity: number;
  /** A worker that missed more sweeps is reaped; one that missed more than half of them gets no leases. */
  missedSweeps: number;
  /** The first is always admitted before the second, since they are interchangeable. */
  requests: Request[];
  workers: (Worker | null)[];
  /** By worker: the incarnation that an operator had drained when it was reaped. */
  marks: (Life | null)[];
  /** Worker that gets no shared leases, for an exclusive request. */
  reserved: number | null;
}

export interface Lease {
  worker: number;
  isExclusive: boolean;
  requests: number[];
}
export type WriteKind =
  | 'progress'
  | 'checkpoint'
  | 'old-checkpoint'
  | 'output'
  | 'release'
  | 'succeed'
  | 'fail'
  | 'drop'
  | 'give-back'
  | 'give-back-failed';
/** Which deadline passes: the start deadline, or all. */
export type Deadline = 'start' | 'all';

export type Action =
  | { do: 'admit' | 'admit-again' | 'admit-other' | 'cancel'; request: number }
  /** The deadline passes first; a dispatch may find it before the janitor does. */
  | { do: 'expire'; request: number; deadline: Deadline | 'none' }
  /** `own`: requests that run by an earlier send of the same command. */
  | {
      do: 'dispatch';
      leases: Lease[];
      reserve?: number;
      passed?: { request: number; deadline: Deadline };
      own?: number[];
    }
  /** Writes with the token of the worker's lease. */
  | { do: 'write'; worker: number; writes: [request: number, kind: WriteKind][] }
  /** All possible writes, with stale tokens. */
  | { do: 'write-stale'; worker: number }
  | { do: 'register'; worker: number; life: Life; as: 'loading' | 'ready' | 'asleep' }
  | { do: 'heartbeat'; worker: number; life: Life; hasPace: boolean }
  | { do: 'stop' | 'leave'; worker: number; life: Life }
  | { do: 'drain' | 'resume' | 'ask-to-sleep'; worker: number }
  /** `again`: within the interval, so it does not count. */
  | { do: 'sweep' | 'sweep-again' | 'lapse-reservation' }
  | { do: 'lapse-mark'; worker: number };

/** Result of an action: the state after it, the reply, and the events and messages it adds. */
export interface Outcome {
  state: State;
  reply: unknown[];
  events: [request: number, type: string][];
  /** `null`: the inbox was read, or deleted with its worker. */
  messages: [worker: number, message: string | null][];
}

export const writeKinds: WriteKind[] = [
  'progress',
  'checkpoint',
  'old-checkpoint',
  'output',
  'release',
  'succeed',
  'fail',
  'drop',
];
writeKinds.push('give-back', 'give-back-failed');

/** Fields of a request before its admission and after its end. */
export const emptyRequest = {
  hasRun: false,
  attempts: 0,
  hasAdvanced: false,
  hasOutput: false,
  isCanceling: false,
  worker: null,
};

export function initialState({
  requests,
  workers,
  capacity,
  missedSweeps,
}: Record<'requests' | 'workers' | 'capacity' | 'missedSweeps', number>): State {
  return {
    capacity,
    missedSweeps,
    requests: Array.from({ length: requests }, () => ({ phase: 'none', ...emptyRequest })),
    workers: Array.from({ length: workers }, () => null),
    marks: Array.from({ length: workers }, () => null),
    reserved: null,
  };
}

export function freeOf(worker: Worker): number {
  return worker.leases.reduce<number>((free, lease) => free - (lease ?? 0), worker.capacity);
}

/** Returns the list that a worker is in. */
export function listOf(worker: Worker): 'loading' | 'draining' | 'busy' | 'asleep' | 'idle' {
  if (worker.mode !== 'open') return worker.mode;
  if (worker.isAsleep) return 'asleep';
  return freeOf(worker) < worker.capacity ? 'busy' : 'idle';
}

/** Returns the queued requests, in dispatch order. */
export function queueOf({ requests }: State): number[] {
  const waiting = requests.flatMap(({ phase }, request) => (phase === 'queued' ? [request] : []));
  return [
    ...waiting.filter((request) => requests[request]!.hasRun),
    ...waiting.filter((request) => !requests[request]!.hasRun),
  ];
}

/** Returns how many sweeps a worker may miss and still get leases. */
export function maxMissedOf({ missedSweeps }: State): number {
  return Math.ceil(missedSweeps / 2);
}

/** Returns whether a worker is part of the dispatchable state. */
export function isOffered(state: State, worker: Worker): boolean {
  return worker.mode === 'open' && worker.missed <= maxMissedOf(state) && freeOf(worker) > 0;
}

export function isServed({ workers }: State): boolean {
  return workers.some((worker) => worker !== null && worker.mode !== 'draining');
}

// Not `structuredClone`, which would take most of the time.
export function copyOf({ capacity, missedSweeps, requests, workers, marks, reserved }: State): State {
  const copied = workers.map((worker) => worker && { ...worker, leases: [...worker.leases] });
  return {
    capacity,
    missedSweeps,
    requests: requests.map((each) => ({ ...each })),
    workers: copied,
    marks: [...marks],
    reserved,
  };
}
