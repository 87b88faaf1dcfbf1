import type { EtaSeconds, Picture, RequestEvent, RequestStatus, RequestView } from '@darkroom/client';

/** One picture of a request, from blank paper to the file. */
export interface PictureState {
  step: number;
  /** 0 as long as nobody has said. */
  totalSteps: number;
  /** The work so far as a data URL. */
  preview?: string | undefined;
  file?: { blob: Blob; seed: number } | undefined;
}

/** What the page knows of a request. Never changed, always replaced. */
export interface RequestState {
  /** `unread`: not asked yet; `gone`: its time is over; `missing`: the server has never heard of it. */
  status: RequestStatus | 'unread' | 'gone' | 'missing';
  isCanceling: boolean;
  /** Whether a live worker serves the model. */
  isPossible: boolean;
  queuePosition?: number | undefined;
  eta?: EtaSeconds | undefined;
  attempts: number;
  pictures: readonly PictureState[];
  startedAtMs?: number | undefined;
  endedAtMs?: number | undefined;
  /** Tokens at the prompt's end that the model did not read; 0 as long as nobody has said. */
  promptTokensCut: number;
  failure?: string | undefined;
  /** Why it cannot be followed: the way to the server, not the request. */
  problem?: string | undefined;
}

export function newRequestState(n: number): RequestState {
  const pictures = Array.from({ length: n }, () => ({ step: 0, totalSteps: 0 }));
  return { status: 'unread', isCanceling: false, isPossible: true, attempts: 0, pictures, promptTokensCut: 0 };
}

/** Whether news of it may still come. */
export function isOpen({ status }: RequestState): boolean {
  return status === 'unread' || status === 'queued' || status === 'running';
}

export function stateAfterEvent(before: RequestState, event: RequestEvent): RequestState {
  const state = { ...before, problem: undefined };
  const atMs = Date.parse(event.timestamp);
  switch (event.type) {
    case 'queued':
      return { ...state, status: 'queued', queuePosition: event.queue_position, attempts: event.attempt - 1 };
    case 'started':
      return { ...state, status: 'running', attempts: event.attempt, startedAtMs: state.startedAtMs ?? atMs };
    case 'progress': {
      const { index, step, total_steps: totalSteps, preview } = event;
      const pictures = withPicture(state, index, { step, totalSteps, ...(preview !== undefined && { preview }) });
      return { ...state, status: 'running', pictures };
    }
    case 'image':
      return stateWithPicture(state, event);
    case 'failed':
      return { ...state, status: 'failed', failure: event.error.message, endedAtMs: atMs };
    case 'succeeded':
      return { ...state, status: 'succeeded', endedAtMs: atMs, promptTokensCut: event.prompt_tokens_cut ?? 0 };
    case 'canceled':
    case 'expired':
      return { ...state, status: event.type, endedAtMs: atMs };
  }
}

export function stateWithPicture(
  state: RequestState,
  { index, data, content_type, seed }: Pick<Picture, 'index' | 'data' | 'content_type' | 'seed'>,
): RequestState {
  const file = { blob: new Blob([data], { type: content_type }), seed };
  return { ...state, pictures: withPicture(state, index, { file }) };
}

/** What a poll says. While events stream, these are ahead of every poll, which then only adds what no event tells: how the queue moves. */
export function stateAfterPoll(state: RequestState, view: RequestView, isStreaming: boolean): RequestState {
  const polled = { ...state, isPossible: view.is_possible, problem: undefined };
  const queue = { queuePosition: view.queue_position ?? undefined, eta: view.eta_seconds };
  if (isStreaming) return state.status === 'queued' && view.status === 'queued' ? { ...polled, ...queue } : polled;
  const share = Math.max(1, state.pictures.length);
  const step = Math.floor(view.step / share);
  const totalSteps = Math.floor(view.total_steps / share);
  return {
    ...polled,
    ...queue,
    status: view.status,
    isCanceling: view.is_canceling,
    attempts: view.attempts,
    pictures: state.pictures.map((picture) => ({ ...picture, step: Math.max(step, picture.step), totalSteps })),
    startedAtMs: timeOf(view.started_at),
    endedAtMs: timeOf(view.ended_at),
    promptTokensCut: view.prompt_tokens_cut ?? 0,
    failure: view.error?.message,
  };
}

function withPicture(state: RequestState, index: number, change: Partial<PictureState>): readonly PictureState[] {
  return state.pictures.map((picture, at) => (at === index ? { ...picture, ...change } : picture));
}

function timeOf(text: string | null): number | undefined {
  return text === null ? undefined : Date.parse(text);
}
