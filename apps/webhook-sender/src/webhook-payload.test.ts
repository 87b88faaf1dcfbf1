import { createKinds, kinds } from '@darkroom/kinds';
import type { OutboxEntry } from '@darkroom/store';
import { echo } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { webhookMessage } from './webhook-payload.ts';

const entry: OutboxEntry = {
  entryId: '1-0',
  requestId: 'tiny-01kaj3v0q8f3zt6m0c9d7p2xwe',
  model: 'tiny',
  kind: 'image',
  owner: '',
  url: 'https://example.com',
  attempt: 1,
  event: { sequence: 2, type: 'started', timestampMs: 0, attempt: 1 },
  retryOf: undefined,
  view: undefined,
  texts: new Map(),
};

it('includes `retry_of` only for a request that an operator retried', () => {
  const data = { request_id: entry.requestId, model: 'tiny', status: 'running', attempt: 1 };
  const message = { type: 'request.started', timestamp: '1970-01-01T00:00:00.000Z' };
  expect(JSON.parse(webhookMessage(entry, kinds).payload)).toEqual({ ...message, data });
  const retryOf = 'tiny-01kaj3v0q8f3zt6m0c9d7p2xwd';
  expect(JSON.parse(webhookMessage({ ...entry, retryOf }, kinds).payload)).toEqual({
    ...message,
    data: { ...data, retry_of: retryOf },
  });
});

it('inlines texts, or links to them', () => {
  const facts = { contentType: 'text/plain', chunks: 1, finish_reason: 'stop' };
  const counts = { prompt_tokens: 7, completion_tokens: 3, cached_tokens: 0, calls: 3 };
  const outputs = [0, 1].map((index) => ({ index, bytes: 5, ...facts, ...counts }));
  const event = { sequence: 3, timestampMs: 0, type: 'succeeded', outputs } as const;
  const textsOf = (texts: [number, string][]): unknown => {
    const { payload } = webhookMessage({ ...entry, kind: 'text', event, texts: new Map(texts) }, kinds);
    return (JSON.parse(payload) as { data: object }).data;
  };
  const usage = { prompt_tokens: 7, completion_tokens: 6, total_tokens: 13, cached_tokens: 0, nfe: 6 };
  const expected = { status: 'succeeded', finish_reasons: ['stop', 'stop'], usage };
  const both: [number, string][] = [
    [0, 'an "owl" 🦉'],
    [1, ''],
  ];
  expect(textsOf(both)).toMatchObject({ ...expected, texts: both.map(([index, text]) => ({ index, text })) });
  const url = `/v1/predict/${entry.requestId}`;
  expect(textsOf([])).toMatchObject({ ...expected, texts: [0, 1].map((index) => ({ index, url, bytes: 5 })) });
});

it("uses the kind's views of progress and results, and sends previews as progress", () => {
  const both = createKinds([...kinds.all, echo]);
  const dataOf = (kind: string, event: object): unknown => {
    const expected = { ...entry, kind, event: { sequence: 3, timestampMs: 0, ...event } as OutboxEntry['event'] };
    const { type, data } = JSON.parse(webhookMessage(expected, both).payload) as {
      type: string;
      data: Record<string, unknown>;
    };
    const { request_id: _id, model: _model, attempt: _attempt, ...rest } = data;
    return [type, rest];
  };
  const progress = { index: 0, done: 1, total: 4 };
  const image = { status: 'running', index: 0, step: 1, total_steps: 4, progress: 0.25 };
  expect(dataOf('image', { type: 'progress', ...progress })).toEqual(['request.progress', image]);
  const preview = { type: 'preview', contentType: 'image/jpeg', ...progress };
  expect(dataOf('image', preview)).toEqual(['request.progress', image]);
  expect(dataOf('echo', { type: 'progress', index: 0, done: 9 })).toEqual([
    'request.progress',
    { status: 'running', characters: 9 },
  ]);
  const outputs = [{ index: 0, contentType: 'text/plain', bytes: 1, chunks: 1, finishReason: 'stop' }];
  expect(dataOf('echo', { type: 'succeeded', outputs })).toEqual([
    'request.succeeded',
    { status: 'succeeded', finish_reason: 'stop' },
  ]);
  // A kind of a newer version.
  expect(dataOf('video', { type: 'succeeded', outputs })).toEqual(['request.succeeded', { status: 'succeeded' }]);
});
