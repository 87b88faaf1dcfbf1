import type { EtaSeconds } from '@darkroom/client';
import { isOpen, type RequestState } from './request-state.ts';

const wordsOf: Readonly<Record<RequestState['status'], (state: RequestState) => string>> = {
  unread: () => 'Asking the server…',
  queued: queuedWords,
  running: stepWords,
  succeeded: (state) => `Developed${durationWords(state)}${cutWords(state)}`,
  failed: ({ failure }) => `Failed: ${failure ?? 'the server does not say why'}`,
  canceled: () => 'Canceled',
  expired: () => 'Expired: it did not end in the time it was given',
  gone: () => 'Its time is over: the server no longer keeps its pictures',
  missing: () => 'The server does not know this request',
};

/** Where a request is, for people. */
export function statusWords(state: RequestState): string {
  const isLeaving = state.isCanceling && isOpen(state);
  return state.problem ?? (isLeaving ? 'Canceling…' : wordsOf[state.status](state));
}

function queuedWords({ isPossible, queuePosition, eta, attempts }: RequestState): string {
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

function durationWords({ startedAtMs, endedAtMs }: RequestState): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return '';
  const seconds = Math.max(0, endedAtMs - startedAtMs) / 1000;
  return ` in ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
