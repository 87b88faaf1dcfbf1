import { expect, it } from 'vitest';
import { newRequestState, type ImageRequestState } from './request-state.ts';
import { etaWords, statusWords } from './status-words.ts';

const state = (change: Partial<ImageRequestState>): string => statusWords({ ...newRequestState(2), ...change });
const images = [3, 5].map((step) => ({ step, totalSteps: 10, preview: undefined, file: undefined }));

it.each([
  [{}, 'Loading…'],
  [{ status: 'queued' }, 'Queued'],
  [{ status: 'queued', queuePosition: 0 }, 'Next in the queue'],
  [{ status: 'queued', queuePosition: 4, eta: { min: 3.2, max: 6 } }, '4 ahead in the queue, done in about 3 to 6 s'],
  [
    { status: 'queued', queuePosition: 1, isPossible: false },
    '1 ahead in the queue; no worker serves its model right now, so it waits',
  ],
  [{ status: 'queued', queuePosition: 0, attempts: 1 }, 'Next in the queue; its worker was lost, another takes over'],
  [{ status: 'queued', isCanceling: true }, 'Canceling…'],
  [{ status: 'running' }, 'Developing'],
  [{ status: 'running', images }, 'Step 8 of 20'],
  [{ status: 'running', isCanceling: true, images }, 'Canceling…'],
  [{ status: 'succeeded', startedAtMs: 1000, endedAtMs: 2840 }, 'Developed in 1.8 s'],
  [{ status: 'succeeded', startedAtMs: 1000, endedAtMs: 43_400 }, 'Developed in 42 s'],
  [{ status: 'succeeded' }, 'Developed'],
  [
    { status: 'succeeded', promptTokensCut: 12 },
    'Developed; the prompt is too long: the last 12 tokens had to be cut off',
  ],
  [{ status: 'succeeded', promptTokensCut: 1 }, 'Developed; the prompt is too long: the last token had to be cut off'],
  [{ status: 'failed', failure: 'out of memory' }, 'Failed: out of memory'],
  [{ status: 'canceled', isCanceling: true }, 'Canceled'],
  [{ status: 'expired' }, 'Expired: it did not finish within its timeout'],
  [{ status: 'gone' }, 'Expired: the server has deleted its images'],
  [{ status: 'missing' }, 'The server does not know this request'],
  [{ status: 'running', problem: 'The server cannot be reached.' }, 'The server cannot be reached.'],
] as [Partial<ImageRequestState>, string][])('%j is "%s"', (change, words) => {
  expect(state(change)).toBe(words);
});

it.each([
  [0, 0.4, 'about 1 s'],
  [4, 4, 'about 4 s'],
  [20, 89, 'about 20 to 89 s'],
  [50, 100, 'about 1 to 2 min'],
  [580, 640, 'about 10 to 11 min'],
])('%d to %d seconds are %s', (min, max, words) => {
  expect(etaWords({ min, max })).toBe(words);
});
