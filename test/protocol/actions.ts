/** What may happen in a state: everything that a process could say there, whether a careful one would say it or not. */
import { type Action, type Lease, type Life, type State, type What, type Worker, whats } from './state.ts';

/** A part of the protocol that is explored as a whole; all of it at once has too many states. */
export interface Scope {
  name: string;
  requests: number;
  workers: number;
  capacity: 2 | 3;
  /** After 2 a worker is silent for a while, after 1 it is buried at once. */
  missedSweeps: 1 | 2;
  /** Checkpoints and outputs, and so attempts that got further; all ways to end. */
  hasProgress?: boolean;
  /** Slots that are promised before the end. */
  hasRelease?: boolean;
  /** Loading, sleeping, stopping, drained and resumed by an operator. */
  hasModes?: boolean;
  /** Workers that leave, and second lives under their names. */
  hasLives?: boolean;
  /** Requests that must run alone. */
  hasAlone?: boolean;
}

type List = (state: State, scope: Scope) => Action[];

export function actionsIn(state: State, scope: Scope): Action[] {
  return [requestActions, dispatchActions, writeActions, workerActions, upkeepActions].flatMap((list) =>
    list(state, scope),
  );
}

const requestActions: List = ({ requests }) =>
  requests.flatMap(({ phase }, request): Action[] => {
    if (phase === 'none')
      return request === 0 || requests[request - 1]!.phase !== 'none' ? [{ do: 'admit', request }] : [];
    return [
      { do: 'admit-again', request },
      { do: 'admit-other', request },
      { do: 'cancel', request },
    ];
  });

function shared(worker: number, requests: number[]): Lease {
  return { worker, isAlone: false, requests };
}

const dispatchActions: List = (state, { hasAlone, hasLives }) => {
  const known = state.requests.flatMap(({ phase }, request) => (phase === 'none' ? [] : [request]));
  const queued = known.filter((request) => state.requests[request]!.phase === 'queued');
  return state.workers.flatMap((_worker, name): Action[] => {
    const each = known.map((request): Action => ({ do: 'dispatch', leases: [shared(name, [request])] }));
    const late = queued.flatMap((request): Action[] =>
      (['start', 'all'] as const).map((over) => {
        return { do: 'dispatch', leases: [shared(name, [request])], late: { request, over } };
      }),
    );
    const other = name === 0 ? 1 : 0;
    const isPair = known.length === 2;
    const pair: Action[] = isPair ? [{ do: 'dispatch', leases: [shared(name, known)] }] : [];
    const spread: Action[] =
      isPair && state.workers.length === 2
        ? [{ do: 'dispatch', leases: [shared(name, [known[0]!]), shared(other, [known[1]!])] }]
        : [];
    const alone = known.map((request): Action => ({
      do: 'dispatch',
      leases: [{ ...shared(name, [request]), isAlone: true }],
    }));
    const reserve: Action = { do: 'dispatch', leases: [], reserve: name };
    // Where lives and modes are looked at, who goes with whom is not.
    return [...each, ...late, ...(hasLives ? [] : [...pair, ...spread]), ...(hasAlone ? [...alone, reserve] : [])];
  });
};

function whatsIn({ hasProgress, hasRelease }: Scope): What[] {
  const isIn = (what: What): boolean => {
    if (what === 'release') return hasRelease === true;
    return hasProgress === true || ['progress', 'give-back', 'give-back-failed'].includes(what);
  };
  return whats.filter(isIn);
}

const writeActions: List = ({ requests, workers }, scope) =>
  workers.flatMap((worker, name): Action[] => {
    const leased = worker?.leases.flatMap((lease, request) => (lease === null ? [] : [request])) ?? [];
    const each = leased.flatMap((request): Action[] => [
      ...whatsIn(scope).map((what): Action => ({ do: 'write', worker: name, writes: [[request, what]] })),
      {
        do: 'write',
        worker: name,
        writes: [
          [request, 'output'],
          [request, 'succeed'],
        ],
      },
    ]);
    const both: Action = { do: 'write', worker: name, writes: leased.map((request) => [request, 'give-back-failed']) };
    const isAdmitted = requests.some(({ phase }) => phase !== 'none');
    return [
      ...each,
      ...(leased.length > 1 ? [both] : []),
      ...(isAdmitted ? [{ do: 'write-stale', worker: name } as const] : []),
    ];
  });

const workerActions: List = ({ workers }, scope) =>
  workers.flatMap((worker, name): Action[] => livesIn(scope).flatMap((life) => lifeActions(worker, name, life, scope)));

function livesIn({ hasLives }: Scope): Life[] {
  return hasLives ? [1, 2] : [1];
}

function lifeActions(worker: Worker | null, name: number, life: Life, { hasModes = false, hasLives }: Scope): Action[] {
  const named = { worker: name };
  const basic: Action[] = [
    { do: 'register', ...named, life, as: 'ready' },
    { do: 'heartbeat', ...named, life, hasPace: hasModes },
  ];
  if (hasLives) basic.push({ do: 'leave', ...named, life });
  if (!hasModes) return basic;
  const modes: Action[] = [
    { do: 'register', ...named, life, as: 'loading' },
    { do: 'register', ...named, life, as: 'asleep' },
    { do: 'stop', ...named, life },
  ];
  const operator: Action[] = [
    { do: 'drain', ...named },
    { do: 'resume', ...named },
  ];
  if (worker) operator.push({ do: 'ask-to-sleep', ...named });
  return [...basic, ...modes, ...(life === 1 ? operator : [])];
}

const upkeepActions: List = ({ requests, workers, marks, reserved }) => [
  ...requests.flatMap(({ phase }, request): Action[] =>
    phase === 'none' ? [] : (['none', 'start', 'all'] as const).map((over) => ({ do: 'expire', request, over })),
  ),
  ...(workers.every((worker) => worker === null) ? [] : [{ do: 'sweep' } as const, { do: 'sweep-again' } as const]),
  ...marks.flatMap((mark, worker): Action[] => (mark === null ? [] : [{ do: 'lapse-mark', worker }])),
  ...(reserved === null ? [] : [{ do: 'lapse-reservation' } as const]),
];
