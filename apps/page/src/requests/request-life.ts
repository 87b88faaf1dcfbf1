import type { EtaSeconds, RequestEvent, RequestStatus, RequestView } from '@darkroom/client';

/** The state of a request, for every kind. Immutable. */
export interface RequestLife {
  /** `unread`: not fetched yet; `gone`: expired (410); `missing`: the server does not know it (404). */
  status: RequestStatus | 'unread' | 'gone' | 'missing';
  isCanceling: boolean;
  /** True if a live worker serves the model. */
  isPossible: boolean;
  queuePosition?: number | undefined;
  eta?: EtaSeconds | undefined;
  /** Deliveries to a worker so far. */
  attempts: number;
  /** True while its worker loads the model. */
  isLoading: boolean;
  /** Milliseconds since 1970. */
  startedAtMs?: number | undefined;
  endedAtMs?: number | undefined;
  /** Time until which the server stores its outputs. */
  expiresAtMs?: number | undefined;
  isPinned?: boolean | undefined;
  /** The reason of its failure. */
  failure?: string | undefined;
  /** The reason why it cannot be followed: a connection problem, not a failure of the request. */
  problem?: string | undefined;
}

export const newLife: RequestLife = {
  status: 'unread',
  isCanceling: false,
  isPossible: true,
  attempts: 0,
  isLoading: false,
};

/** Returns true if the request may still change. */
export function isOpen({ status }: Pick<RequestLife, 'status'>): boolean {
  return status === 'unread' || status === 'queued' || status === 'running';
}

export function lifeAfterEvent<State extends RequestLife>(before: State, event: RequestEvent): State {
  const state = { ...before, problem: undefined, isLoading: event.type === 'loading' };
  const atMs = Date.parse(event.timestamp);
  switch (event.type) {
    case 'queued':
      return { ...state, status: 'queued', queuePosition: event.queue_position, attempts: event.attempt - 1 };
    case 'started':
      return { ...state, status: 'running', attempts: event.attempt, startedAtMs: state.startedAtMs ?? atMs };
    case 'loading':
    case 'progress':
    case 'delta':
    case 'snapshot':
      return { ...state, status: 'running' };
    case 'failed':
      return { ...state, status: 'failed', failure: event.error.message, endedAtMs: atMs };
    case 'succeeded':
    case 'canceled':
    case 'expired':
      return { ...state, status: event.type, endedAtMs: atMs };
    case 'image':
    case 'reset':
    case 'text':
      return state;
  }
}

/** Applies a poll. While events are streamed, they are newer than polls, which then only add the queue position. */
export function lifeAfterPoll<State extends RequestLife>(state: State, view: RequestView, isStreaming: boolean): State {
  const polled = { ...state, isPossible: view.is_possible, problem: undefined };
  const queue = { queuePosition: view.queue_position ?? undefined, eta: view.eta_seconds };
  if (isStreaming) return state.status === 'queued' && view.status === 'queued' ? { ...polled, ...queue } : polled;
  return {
    ...polled,
    ...queue,
    status: view.status,
    isCanceling: view.is_canceling,
    attempts: view.attempts,
    startedAtMs: timeOf(view.started_at),
    endedAtMs: timeOf(view.ended_at),
    expiresAtMs: timeOf(view.expires_at),
    isPinned: view.is_pinned,
    failure: view.error?.message,
  };
}

function timeOf(text: string | null): number | undefined {
  return text === null ? undefined : Date.parse(text);
}
