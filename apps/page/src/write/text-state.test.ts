import type { RequestEvent, TextView } from '@darkroom/client';
import { expect, it } from 'vitest';
import { usableText, newTextState, textAfterEvent, textAfterPoll, type TextState, textWords } from './text-state.ts';

type EventBody = RequestEvent extends infer Event
  ? Event extends RequestEvent
    ? Omit<Event, 'id' | 'request_id' | 'timestamp'>
    : never
  : never;

function after(bodies: readonly EventBody[], from: TextState = newTextState): TextState {
  return bodies.reduce(
    (state, body, index) =>
      textAfterEvent(state, {
        id: `${index}-0`,
        request_id: 'm-1',
        timestamp: new Date(index * 10).toISOString(),
        ...body,
      }),
    from,
  );
}

const delta = (offset: number, text: string): EventBody => ({ type: 'delta', index: 0, offset, text });
const snapshot = (offset: number, text: string): EventBody => ({ type: 'snapshot', index: 0, offset, text });
const started: EventBody = { type: 'started', attempt: 1 };

it('grows, and is reset if it was written differently', () => {
  const grown = after([started, delta(0, 'a fox'), delta(5, ' on')]);
  expect([grown.status, grown.text]).toEqual(['running', 'a fox on']);
  expect(after([{ type: 'reset', index: 0, offset: 2 }, delta(2, 'cat')], grown).text).toBe('a cat');
});

it('shows a block in place, and its final text', () => {
  expect(after([snapshot(0, 'a░ cake'), snapshot(0, 'a red cake')]).text).toBe('a red cake');
  expect(after([snapshot(0, 'a red cake'), delta(0, 'a red cake'), snapshot(10, '░░')]).text).toBe('a red cake░░');
});

it('does not become shorter when the stream repeats the text of a poll', () => {
  const polled = { ...newTextState, status: 'running' as const, text: 'a fox on' };
  expect(after([delta(0, 'a fox')], polled).text).toBe('a fox on');
  expect(after([delta(0, 'a fox'), delta(5, ' on the moon')], polled).text).toBe('a fox on the moon');
});

it('takes the text from a poll if no events are streamed', () => {
  const usage = { completion_tokens: 3, nfe: 2 };
  const view = { status: 'running', is_possible: true, texts: [{ index: 0, text: 'a fox' }], usage } as TextView;
  expect(textAfterPoll(newTextState, view, false).text).toBe('');
  expect(textAfterPoll({ ...newTextState, status: 'running' }, view, false).text).toBe('a fox');
  expect(textAfterPoll({ ...newTextState, status: 'running' }, view, true).text).toBe('');
  const ended = textAfterPoll(newTextState, { ...view, status: 'succeeded' }, false);
  expect([ended.text, ended.tokens, ended.calls]).toEqual(['a fox', 3, 2]);
});

it('preserves the words before the first unknown token', () => {
  expect(usableText('a red ░ on░')).toBe('a red');
  expect(usableText('a red cake')).toBe('a red cake');
});

it('describes its progress', () => {
  const end: EventBody = {
    type: 'text',
    index: 0,
    text: 'a fox',
    bytes: 5,
    finish_reason: 'stop',
    prompt_tokens: 9,
    completion_tokens: 3,
    cached_tokens: 0,
    calls: 3,
  };
  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12, cached_tokens: 0, nfe: 3 };
  const succeeded: EventBody = { type: 'succeeded', usage, finish_reasons: ['stop'] };
  expect(textWords(newTextState)).toBe('Loading…');
  expect(textWords(after([started, delta(0, 'a')]))).toBe('Writing…');
  expect(textWords(after([started, end, succeeded]))).toBe('3 tokens in 20 ms');
  expect(textWords(after([started, { ...end, calls: 1 }, succeeded]))).toBe('3 tokens with 1 model call in 20 ms');
  expect(
    textWords({ ...newTextState, status: 'succeeded', tokens: 1, calls: 1, startedAtMs: 0, endedAtMs: 2400 }),
  ).toBe('1 token in 2.4 s');
  expect(textWords({ ...newTextState, status: 'gone' })).toBe('Expired: the server has deleted its texts');
});
