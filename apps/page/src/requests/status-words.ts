import type { EtaSeconds } from '@darkroom/client';
import { isOpen, type RequestLife } from './request-life.ts';
import type { ImageRequestState } from './request-state.ts';

/** Texts that depend on the kind of request. */
export interface KindWords {
  running: string;
  succeeded: string;
  /** The outputs that the server deletes, such as "images". */
  outputs: string;
}

/** Describes the state of a request for images. */
export function statusWords(state: ImageRequestState): string {
  const succeeded = `Developed${durationWords(state)}${cutWords(state)}`;
  return lifeWords(state, { running: stepWords(state), succeeded, outputs: 'images' });
}

/** Returns the time until which the server stores the images; empty if it is unknown or over. */
export function keptWords({ status, expiresAtMs = 0 }: RequestLife, nowMs: number): string {
  if (status !== 'succeeded' || expiresAtMs <= nowMs) return '';
  const time: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
  const isToday = expiresAtMs - nowMs < 12 * 3_600_000;
  const day: Intl.DateTimeFormatOptions = isToday ? {} : { month: 'short', day: 'numeric' };
  return `Kept until ${new Date(expiresAtMs).toLocaleString(undefined, { ...day, ...time })}`;
}

/** Describes the state of any request. */
export function lifeWords(life: RequestLife, { running, succeeded, outputs }: KindWords): string {
  if (life.problem !== undefined) return life.problem;
  if (life.isCanceling && isOpen(life)) return 'Canceling…';
  switch (life.status) {
    case 'unread':
      return 'Loading…';
    case 'queued':
      return queuedWords(life);
    case 'running':
      return life.isLoading ? 'Loading the model' : running;
    case 'succeeded':
      return succeeded;
    case 'failed':
      return `Failed: ${life.failure ?? 'unknown reason'}`;
    case 'canceled':
      return 'Canceled';
    case 'expired':
      return 'Expired: it did not finish within its timeout';
    case 'gone':
      return `Expired: the server has deleted its ${outputs}`;
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

function stepWords({ images }: ImageRequestState): string {
  const step = images.reduce((sum, image) => sum + image.step, 0);
  const total = images.reduce((sum, image) => sum + image.totalSteps, 0);
  return total === 0 ? 'Developing' : `Step ${step} of ${total}`;
}

/** Formats an estimate, such as `about 3 to 6 s` or `about 2 min`. */
export function etaWords({ min, max }: EtaSeconds): string {
  const isLong = max >= 90;
  const [from, to] = [min, max].map((seconds) => Math.max(1, Math.round(isLong ? seconds / 60 : seconds)));
  return `about ${from === to ? to : `${from} to ${to}`} ${isLong ? 'min' : 's'}`;
}

/** Mentions cut tokens: otherwise the missing content would look like an error. */
function cutWords({ promptTokensCut: cut }: ImageRequestState): string {
  if (cut === 0) return '';
  const tokens = cut === 1 ? 'the last token' : `the last ${cut} tokens`;
  return `; the prompt is too long: ${tokens} had to be cut off`;
}

function durationWords({ startedAtMs, endedAtMs }: RequestLife): string {
  if (startedAtMs === undefined || endedAtMs === undefined) return '';
  const seconds = Math.max(0, endedAtMs - startedAtMs) / 1000;
  return ` in ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}
