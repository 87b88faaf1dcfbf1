/** What stands in Redis of the hand-over, as far as it decides what comes next, and what may happen to it. */

/** What each request takes of a worker. */
export const slots = 2;
export const maxAttempts = 2;

export type Life = 1 | 2;
export type Terminal = 'succeeded' | 'failed' | 'canceled' | 'expired';

export interface Request {
  phase: 'none' | 'queued' | 'running' | 'ended';
  /** It was leased once: it waits in front of all that never were, and no start deadline counts. */
  hasRun: boolean;
  attempts: number;
  /** It got further than ever since its last lease. */
  hasAdvanced: boolean;
  hasOutput: boolean;
  /** It is to be dropped. */
  isCanceling: boolean;
  /** Who runs it. */
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
  /** Sweeps since it was heard of. */
  missed: number;
  /** By request: slots that it still claims, of none too: it is what a burial returns. */
  leases: (number | null)[];
}

export interface State {
  /** Of every worker, in slots: of 2 there is room for one request, and of 3 a second overhangs, so that `free` is below zero. */
  capacity: number;
  /** A worker that missed more is buried, and one that missed half of them gets no lease. */
  missedSweeps: number;
  /** The first is admitted before the second: which is which makes no difference. */
  requests: Request[];
  workers: (Worker | null)[];
  /** By worker: the life that an operator had drained when it was buried. */
  marks: (Life | null)[];
  /** Who gets no shared leases, for a request that must run alone. */
  reserved: number | null;
}

export interface Lease {
  worker: number;
  isAlone: boolean;
  requests: number[];
}
export type What =
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
/** Of a request's time to start, or of all its time. */
export type Over = 'start' | 'all';

export type Action =
  | { do: 'admit' | 'admit-again' | 'admit-other' | 'cancel'; request: number }
  /** A request's time is over first; `dispatch` may come before the janitor. */
  | { do: 'expire'; request: number; over: Over | 'none' }
  /** `own`: this has been sent before, and they are leased by it. */
  | { do: 'dispatch'; leases: Lease[]; reserve?: number; late?: { request: number; over: Over }; own?: number[] }
  /** By the token that stands in the worker's lease. */
  | { do: 'write'; worker: number; writes: [request: number, what: What][] }
  /** Everything that can be written, by tokens that no lease has any more. */
  | { do: 'write-stale'; worker: number }
  | { do: 'register'; worker: number; life: Life; as: 'loading' | 'ready' | 'asleep' }
  | { do: 'heartbeat'; worker: number; life: Life; hasPace: boolean }
  | { do: 'stop' | 'leave'; worker: number; life: Life }
  | { do: 'drain' | 'resume' | 'ask-to-sleep'; worker: number }
  /** `again` comes within the interval and does not count. */
  | { do: 'sweep' | 'sweep-again' | 'lapse-reservation' }
  | { do: 'lapse-mark'; worker: number };

/** What an action comes to: the state after it, what it is answered, and what it says to readers and workers. */
export interface Outcome {
  state: State;
  reply: unknown[];
  events: [request: number, type: string][];
  /** `none`: the inbox goes with its worker, or was read. */
  messages: [worker: number, message: string | null][];
}

export const whats: What[] = [
  'progress',
  'checkpoint',
  'old-checkpoint',
  'output',
  'release',
  'succeed',
  'fail',
  'drop',
];
whats.push('give-back', 'give-back-failed');

/** Of a request that nothing has happened to, or nothing will. */
export const nothing = {
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
    requests: Array.from({ length: requests }, () => ({ phase: 'none', ...nothing })),
    workers: Array.from({ length: workers }, () => null),
    marks: Array.from({ length: workers }, () => null),
    reserved: null,
  };
}

export function freeOf(worker: Worker): number {
  return worker.leases.reduce<number>((free, lease) => free - (lease ?? 0), worker.capacity);
}

/** The one list that a worker is in. */
export function listOf(worker: Worker): 'loading' | 'draining' | 'busy' | 'asleep' | 'idle' {
  if (worker.mode !== 'open') return worker.mode;
  if (worker.isAsleep) return 'asleep';
  return freeOf(worker) < worker.capacity ? 'busy' : 'idle';
}

/** The requests that wait, in the order of dispatch. */
export function queueOf({ requests }: State): number[] {
  const waiting = requests.flatMap(({ phase }, request) => (phase === 'queued' ? [request] : []));
  return [
    ...waiting.filter((request) => requests[request]!.hasRun),
    ...waiting.filter((request) => !requests[request]!.hasRun),
  ];
}

/** How many sweeps a worker may have missed that still gets leases. */
export function patienceOf({ missedSweeps }: State): number {
  return Math.ceil(missedSweeps / 2);
}

/** What a former is shown of a worker. */
export function isOffered(state: State, worker: Worker): boolean {
  return worker.mode === 'open' && worker.missed <= patienceOf(state) && freeOf(worker) > 0;
}

export function isServed({ workers }: State): boolean {
  return workers.some((worker) => worker !== null && worker.mode !== 'draining');
}

/** Structured clones take most of an exploration's time. */
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
