import type { EtaSeconds } from '@darkroom/client';
import { isOpen, type RequestLife } from './request-life.ts';
import type { RequestState } from './request-state.ts';

/** What is said of a kind of request and of no other. */
export interface KindWords {
  running: string;
  succeeded: string;
  /** What the server no longer keeps. */
  outputs: string;
}

/** Where a request of pictures is, for people. */
export function statusWords(state: RequestState): string {
  const succeeded = `Developed${durationWords(state)}${cutWords(state)}`;
  return lifeWords(state, { running: stepWords(state), succeeded, outputs: 'pictures' });
}

/** Where a request is, for people. */
export function lifeWords(life: RequestLife, { running, succeeded, outputs }: KindWords): string {
  if (life.problem !== undefined) return life.problem;
  if (life.isCanceling && isOpen(life)) return 'Canceling…';
  switch (life.status) {
    case 'unread':
      return 'Asking the server…';
    case 'queued':
      return queuedWords(life);
    case 'running':
      return life.isLoading ? 'Loading the model' : running;
    case 'succeeded':
      return succeeded;
    case 'failed':
      return `Failed: ${life.failure ?? 'the server does not say why'}`;
    case 'canceled':
      return 'Canceled';
    case 'expired':
      return 'Expired: it did not end in the time it was given';
    case 'gone':
      return `Its time is over: the server no longer keeps its ${outputs}`;
    case 'missing':
      return 'The server does not know this request';
  }
}

function queuedWords({ isPossible, queuePosition, eta, attempts }: RequestLife): string {
  const place =
    queuePosition === undefined
      ? 'Queued'
      : queuePosition === 0
        ? 'Next in the queue'
        : `${queuePosition} ahead in the queue`;
  if (!isPossible) return `${place}; no worker serves its model right now, so it waits`;
  const again = attempts > 0 ? '; its worker was lost, another takes over' : '';
  return `${place}${eta === undefined ? '' : `, done in ${etaWords(eta)}`}${again}`;
}

function stepWords({ pictures }: RequestState): string {
  const step = pictures.reduce((sum, picture) => sum + picture.step, 0);
  const total = pictures.reduce((sum, picture) => sum + picture.totalSteps, 0);
  return total === 0 ? 'Developing' : `Step ${step} of ${total}`;
}

/** `about 3 to 6 s`, `about 2 min`. */
export function etaWords({ min, max }: EtaSeconds): string {
  const isLong = max >= 90;
  const [from, to] = [min, max].map((seconds) => Math.max(1, Math.round(isLong ? seconds / 60 : seconds)));
  return `about ${from === to ? to : `${from} to ${to}`} ${isLong ? 'min' : 's'}`;
}

/** A picture without what the prompt's end asks for would look like a fault. */
function cutWords({ promptTokensCut: cut }: RequestState): string {
  if (cut === 0) return '';
  const tokens = cut === 1 ? 'the last token' : `the last ${cut} tokens`;
  return `; the prompt is too long for the model, which did not read ${tokens} of it`;
}

function durationWords({ startedAtMs, endedAtMs }: RequestLife): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return '';
  const seconds = Math.max(0, endedAtMs - startedAtMs) / 1000;
  return ` in ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
