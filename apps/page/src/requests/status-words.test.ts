import { expect, it } from 'vitest';
import { newRequestState, type RequestState } from './request-state.ts';
import { etaWords, statusWords } from './status-words.ts';

const state = (change: Partial<RequestState>): string => statusWords({ ...newRequestState(2), ...change });
const pictures = [3, 5].map((step) => ({ step, totalSteps: 10, preview: undefined, file: undefined }));

it.each([
  [{}, 'Asking the server…'],
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
  [{ status: 'running', pictures }, 'Step 8 of 20'],
  [{ status: 'running', isCanceling: true, pictures }, 'Canceling…'],
  [{ status: 'succeeded', startedAtMs: 1000, endedAtMs: 2840 }, 'Developed in 1.8 s'],
  [{ status: 'succeeded', startedAtMs: 1000, endedAtMs: 43_400 }, 'Developed in 42 s'],
  [{ status: 'succeeded' }, 'Developed'],
  [
    { status: 'succeeded', promptTokensCut: 12 },
    'Developed; the prompt is too long for the model, which did not read the last 12 tokens of it',
  ],
  [
    { status: 'succeeded', promptTokensCut: 1 },
    'Developed; the prompt is too long for the model, which did not read the last token of it',
  ],
  [{ status: 'failed', failure: 'out of memory' }, 'Failed: out of memory'],
  [{ status: 'canceled', isCanceling: true }, 'Canceled'],
  [{ status: 'expired' }, 'Expired: it did not end in the time it was given'],
  [{ status: 'gone' }, 'Its time is over: the server no longer keeps its pictures'],
  [{ status: 'missing' }, 'The server does not know this request'],
  [{ status: 'running', problem: 'The server cannot be reached.' }, 'The server cannot be reached.'],
] as [Partial<RequestState>, string][])('%j is "%s"', (change, words) => {
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
