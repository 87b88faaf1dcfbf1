/** Lists the model's actions in a state: every command that a process could send, even if it would be incorrect. */
import { type Action, type Lease, type Life, type State, type WriteKind, type Worker, writeKinds } from './state.ts';

/** A part of the protocol that is explored exhaustively; the whole protocol has too many states. */
export interface Scope {
  name: string;
  requests: number;
  workers: number;
  capacity: 2 | 3;
  /** 2: a worker gets no leases from its second missed sweep on and is reaped at the third; 1: at the second. */
  missedSweeps: 1 | 2;
  /** Checkpoints, outputs written before the end, and requests that fail or are dropped. */
  hasProgress?: boolean;
  /** Slots that are released before the request ends. */
  hasRelease?: boolean;
  /** Loading, sleeping and stopping workers, and operators that drain, resume or send workers to sleep. */
  hasModes?: boolean;
  /** Workers that unregister, and second incarnations with the same worker id. */
  hasLives?: boolean;
  /** Exclusive requests. */
  hasExclusive?: boolean;
}

type ListActions = (state: State, scope: Scope) => Action[];

export function actionsIn(state: State, scope: Scope): Action[] {
  return [requestActions, dispatchActions, writeActions, workerActions, upkeepActions].flatMap((list) =>
    list(state, scope),
  );
}

const requestActions: ListActions = ({ requests }) =>
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
  return { worker, isExclusive: false, requests };
}

const dispatchActions: ListActions = (state, { hasExclusive, hasLives }) => {
  const known = state.requests.flatMap(({ phase }, request) => (phase === 'none' ? [] : [request]));
  const queued = known.filter((request) => state.requests[request]!.phase === 'queued');
  return state.workers.flatMap((_worker, index): Action[] => {
    const each = known.map((request): Action => ({ do: 'dispatch', leases: [shared(index, [request])] }));
    const passed = queued.flatMap((request): Action[] =>
      (['start', 'all'] as const).map((deadline) => {
        return { do: 'dispatch', leases: [shared(index, [request])], passed: { request, deadline } };
      }),
    );
    const other = index === 0 ? 1 : 0;
    const isPair = known.length === 2;
    const pair: Action[] = isPair ? [{ do: 'dispatch', leases: [shared(index, known)] }] : [];
    const spread: Action[] =
      isPair && state.workers.length === 2
        ? [{ do: 'dispatch', leases: [shared(index, [known[0]!]), shared(other, [known[1]!])] }]
        : [];
    const exclusive = known.map((request): Action => ({
      do: 'dispatch',
      leases: [{ ...shared(index, [request]), isExclusive: true }],
    }));
    const reserve: Action = { do: 'dispatch', leases: [], reserve: index };
    // Scopes with several incarnations skip dispatches of both requests, to limit the number of states.
    return [
      ...each,
      ...passed,
      ...(hasLives ? [] : [...pair, ...spread]),
      ...(hasExclusive ? [...exclusive, reserve] : []),
    ];
  });
};

function writeKindsIn({ hasProgress, hasRelease }: Scope): WriteKind[] {
  const isIn = (kind: WriteKind): boolean => {
    if (kind === 'release') return hasRelease === true;
    return hasProgress === true || ['progress', 'give-back', 'give-back-failed'].includes(kind);
  };
  return writeKinds.filter(isIn);
}

const writeActions: ListActions = ({ requests, workers }, scope) =>
  workers.flatMap((worker, index): Action[] => {
    const leased = worker?.leases.flatMap((lease, request) => (lease === null ? [] : [request])) ?? [];
    const each = leased.flatMap((request): Action[] => [
      ...writeKindsIn(scope).map((kind): Action => ({ do: 'write', worker: index, writes: [[request, kind]] })),
      {
        do: 'write',
        worker: index,
        writes: [
          [request, 'output'],
          [request, 'succeed'],
        ],
      },
    ]);
    const both: Action = { do: 'write', worker: index, writes: leased.map((request) => [request, 'give-back-failed']) };
    const isAdmitted = requests.some(({ phase }) => phase !== 'none');
    return [
      ...each,
      ...(leased.length > 1 ? [both] : []),
      ...(isAdmitted ? [{ do: 'write-stale', worker: index } as const] : []),
    ];
  });

const workerActions: ListActions = ({ workers }, scope) =>
  workers.flatMap((worker, index): Action[] =>
    livesIn(scope).flatMap((life) => lifeActions(worker, index, life, scope)),
  );

function livesIn({ hasLives }: Scope): Life[] {
  return hasLives ? [1, 2] : [1];
}

function lifeActions(
  worker: Worker | null,
  index: number,
  life: Life,
  { hasModes = false, hasLives }: Scope,
): Action[] {
  const named = { worker: index };
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

const upkeepActions: ListActions = ({ requests, workers, marks, reserved }) => [
  ...requests.flatMap(({ phase }, request): Action[] =>
    phase === 'none'
      ? []
      : (['none', 'start', 'all'] as const).map((deadline) => ({ do: 'expire', request, deadline })),
  ),
  ...(workers.every((worker) => worker === null) ? [] : [{ do: 'sweep' } as const, { do: 'sweep-again' } as const]),
  ...marks.flatMap((mark, worker): Action[] => (mark === null ? [] : [{ do: 'lapse-mark', worker }])),
  ...(reserved === null ? [] : [{ do: 'lapse-reservation' } as const]),
];
