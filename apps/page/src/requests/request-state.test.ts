import type { ImageView, RequestEvent } from '@darkroom/client';
import { describe, expect, it } from 'vitest';
import { isOpen } from './request-life.ts';
import { newRequestState, type ImageRequestState, stateAfterEvent, stateAfterPoll } from './request-state.ts';

type EventBody = RequestEvent extends infer Event
  ? Event extends RequestEvent
    ? Omit<Event, 'id' | 'request_id' | 'timestamp'>
    : never
  : never;

function after(events: readonly EventBody[], state = newRequestState(1)): ImageRequestState {
  const whole = events.map((event, index) => ({
    id: `${index + 1}-0`,
    request_id: 'tiny-1',
    timestamp: new Date(1000 * index).toISOString(),
    ...event,
  }));
  return whole.reduce((before, event) => stateAfterEvent(before, event), state);
}

const queued = { type: 'queued', queue_position: 3, attempt: 1 } as const;
const started = { type: 'started', attempt: 1 } as const;
const progress = (step: number, preview?: string, index = 0): EventBody => ({
  type: 'progress',
  index,
  step,
  total_steps: 4,
  progress: step / 4,
  ...(preview !== undefined && { preview }),
});
const image = {
  type: 'image',
  index: 0,
  url: '/u',
  seed: 7,
  width: 1,
  height: 1,
  content_type: 'image/png',
  bytes: 2,
  data: Uint8Array.from([1, 2]),
} as const;

const view = (change: Partial<ImageView>): ImageView => ({
  kind: 'image',
  request_id: 'tiny-1',
  status: 'queued',
  is_canceling: false,
  model: 'tiny',
  created_at: '1970-01-01T00:00:00.000Z',
  started_at: null,
  ended_at: null,
  expires_at: null,
  is_pinned: false,
  queue_position: 2,
  is_possible: true,
  attempts: 0,
  step: 0,
  total_steps: 8,
  progress: 0,
  seed: 7,
  seeds: [7],
  parameters: {} as ImageView['parameters'],
  prompt_tokens_cut: null,
  negative_prompt_tokens_cut: null,
  images: [],
  urls: { self: '', events: '', cancel: '' },
  ...change,
});

describe('events', () => {
  it('advance from the queue over previews to the file and the end', async () => {
    expect(after([queued])).toMatchObject({ status: 'queued', queuePosition: 3, attempts: 0 });
    const running = after([queued, started, progress(1, 'data:a'), progress(2)]);
    expect(running).toMatchObject({ status: 'running', startedAtMs: 1000 });
    expect(running.images).toEqual([{ step: 2, totalSteps: 4, preview: 'data:a', file: undefined }]);
    const cuts = { prompt_tokens_cut: 12, negative_prompt_tokens_cut: 0 };
    const ended = after([queued, started, progress(4), image, { type: 'succeeded', images: [], ...cuts }]);
    expect(ended).toMatchObject({ status: 'succeeded', endedAtMs: 4000, promptTokensCut: 12 });
    const uncounted = { prompt_tokens_cut: null, negative_prompt_tokens_cut: null };
    expect(after([queued, { type: 'succeeded', images: [], ...uncounted }])).toMatchObject({ promptTokensCut: 0 });
    const { blob, seed } = ended.images[0]!.file!;
    expect([seed, blob.type, new Uint8Array(await blob.arrayBuffer())]).toEqual([7, 'image/png', image.data]);
  });

  it('advance one of several images', () => {
    const { images } = after([progress(3, 'data:b', 1)], newRequestState(3));
    expect(images.map(({ step }) => step)).toEqual([0, 3, 0]);
  });

  it('report that a worker was lost', () => {
    expect(after([queued, started, { ...queued, attempt: 2 }])).toMatchObject({ status: 'queued', attempts: 1 });
  });

  it('report a failure, and clear a connection problem', () => {
    const failed = after([{ type: 'failed', error: { code: 'worker_lost', message: 'lost' } }]);
    expect([failed.status, failed.failure, isOpen(failed)]).toEqual(['failed', 'lost', false]);
    expect(after([started], { ...newRequestState(1), problem: 'no way' }).problem).toBeUndefined();
  });
});

describe('polls', () => {
  it('set everything while no events are streamed', () => {
    const state = stateAfterPoll(newRequestState(2), view({ status: 'running', step: 5, queue_position: null }), false);
    expect(state).toMatchObject({ status: 'running', queuePosition: undefined });
    expect(state.images.map(({ step, totalSteps }) => [step, totalSteps])).toEqual([
      [2, 4],
      [2, 4],
    ]);
  });

  it('update the queue position while events are streamed', () => {
    const state = stateAfterPoll(after([queued]), view({ queue_position: 1, eta_seconds: { min: 2, max: 5 } }), true);
    expect(state).toMatchObject({ queuePosition: 1, eta: { min: 2, max: 5 } });
  });

  it('never revert what events reported', () => {
    const running = after([queued, started, progress(3)]);
    expect(stateAfterPoll(running, view({ status: 'queued' }), true)).toEqual(running);
    expect(stateAfterPoll(after([queued]), view({ status: 'succeeded' }), true).status).toBe('queued');
  });
});
