/** Events of a response from different logs of the same text: the text and the numbers are the same. */
import type { Metadata, StoredEvent } from '@darkroom/core';
import { describe, expect, it } from 'vitest';
import { afterNumber } from './after-number.ts';
import { type ResponseEvent, ResponseReader } from './response-events.ts';
import { exampleRequest } from './response-view.ts';

const index = 0;
const words = ['a ', 'red ', 'fox ', 'under ', 'the ', '🌙', ' and ', 'the ', 'stars'];
const whole = words.join('');
const output = {
  index,
  contentType: 'text/plain',
  bytes: 40,
  chunks: 1,
  finish_reason: 'stop',
  prompt_tokens: 9,
  completion_tokens: 9,
  cached_tokens: 2,
  calls: 9,
};

type Entry = StoredEvent extends infer Event
  ? Event extends StoredEvent
    ? Omit<Event, 'sequence' | 'timestampMs'>
    : never
  : never;

/** Returns a log of these entries, all with the same time. */
function logOf(entries: readonly Entry[]): StoredEvent[] {
  return entries.map((entry, at) => ({ ...entry, sequence: at + 1, timestampMs: 1_795_225_246_318 }));
}

const queued: Entry = { type: 'queued', position: 0, attempt: 1 };
const started: Entry = { type: 'started', attempt: 1 };
const ended: Entry[] = [
  { type: 'output', output, chunkIndex: 0 },
  { type: 'succeeded', outputs: [output] },
];
const delta = (offset: number, text: string): Entry => ({ type: 'delta', index, offset, text, facts: { ids: '5,' } });
const snapshot = (offset: number, text: string, facts?: Metadata): Entry => ({
  type: 'snapshot',
  index,
  offset,
  text,
  ...(facts && { facts }),
});

/** Returns a delta for each part. */
function deltasOf(parts: readonly string[], from = 0): Entry[] {
  let offset = from;
  return parts.map((part) => {
    const entry = delta(offset, part);
    offset += part.length;
    return entry;
  });
}

const lengths = words.map((_word, at) => words.slice(0, at).join('').length);

/** Logs of the same answer, at different stages of a request. */
const logs: Record<string, Entry[]> = {
  'word by word': [queued, started, delta(0, ''), ...deltasOf(words), ...ended],
  'with joined chunks': [queued, started, delta(0, whole.slice(0, 9)), delta(9, whole.slice(9)), ...ended],
  'partly compacted': [
    queued,
    started,
    snapshot(0, whole.slice(0, lengths[5])),
    ...deltasOf(words.slice(5), lengths[5]),
    ...ended,
  ],
  'fully compacted': [queued, started, { type: 'progress', index, done: 9, total: 9 }, snapshot(0, whole), ...ended],
  'with chunks repeated after a restart': [
    queued,
    started,
    ...deltasOf(words.slice(0, 6)),
    { type: 'queued', position: 0, attempt: 2 },
    { type: 'started', attempt: 2 },
    ...deltasOf([words.slice(3, 7).join(''), ...words.slice(7)], lengths[3]),
    ...ended,
  ],
  'trimmed to its last entries': [queued, started, snapshot(0, whole), ended[1]!],
  'block by block': [
    queued,
    started,
    snapshot(0, 'a ░fox ', { ids: '5,3,6,', calls: 1 }),
    snapshot(0, whole.slice(0, lengths[3]), { ids: '5,', calls: 1, settled: 1 }),
    snapshot(lengths[3]!, '░'.repeat(4), { ids: '3,3,3,3,', calls: 1 }),
    snapshot(lengths[3]!, whole.slice(lengths[3]), { ids: '6,', calls: 2, settled: 1 }),
    ...ended,
  ],
};

function eventsOf(entries: readonly Entry[]): ResponseEvent[] {
  const reader = new ResponseReader(exampleRequest);
  return logOf(entries).flatMap((event) => reader.read(event));
}

const isDelta = (event: ResponseEvent): boolean => event.type === 'response.output_text.delta';

function textOf(events: readonly ResponseEvent[]): string {
  return events.map(({ delta: text = '' }) => text as string).join('');
}

describe('events', () => {
  it("come in OpenAI's order, numbered by their position in the text", () => {
    const events = eventsOf(logs['word by word']!);
    const n = whole.length;
    expect(events.map(({ type, sequence_number: number }) => [type, number])).toEqual([
      ['response.created', 0],
      ['response.queued', 1],
      ['response.in_progress', 2],
      ['response.output_item.added', 3],
      ['response.content_part.added', 4],
      ...words.map((word, at) => ['response.output_text.delta', 4 + lengths[at]! + word.length]),
      ['response.output_text.done', 5 + n],
      ['response.content_part.done', 6 + n],
      ['response.output_item.done', 7 + n],
      ['response.completed', 8 + n],
    ]);
    expect(textOf(events)).toBe(whole);
    expect(events.at(-1)).toMatchObject({
      response: {
        status: 'completed',
        output: [{ status: 'completed', content: [{ text: whole }] }],
        usage: { input_tokens: 9, input_tokens_details: { cached_tokens: 2 }, output_tokens: 9, total_tokens: 18 },
      },
    });
  });

  it.each(Object.keys(logs))('are the same except for the split into deltas, for a log %s', (name) => {
    const events = eventsOf(logs[name]!);
    const all = eventsOf(logs['word by word']!);
    expect(events.filter((event) => !isDelta(event))).toEqual(all.filter((event) => !isDelta(event)));
    expect(textOf(events)).toBe(whole);
    for (const { sequence_number: number } of events.filter(isDelta))
      expect(textOf(events.filter((event) => event.sequence_number <= number))).toBe(whole.slice(0, number - 4));
  });

  it.each(Object.keys(logs))('neither lose nor repeat text when resumed after any event, for a log %s', (name) => {
    for (const before of Object.values(logs))
      for (const { sequence_number: number } of eventsOf(before)) {
        const seen = eventsOf(before).filter((event) => event.sequence_number <= number);
        const rest = eventsOf(logs[name]!).flatMap((event) => afterNumber(event, number) ?? []);
        expect(textOf([...seen, ...rest])).toBe(whole);
        const numbers = [...seen, ...rest].map((event) => event.sequence_number);
        expect(numbers).toEqual([...new Set(numbers)].toSorted((left, right) => left - right));
        const types = [...seen, ...rest].filter((event) => !isDelta(event)).map(({ type }) => type);
        expect(new Set(types).size).toBe(types.length);
        expect(types).toHaveLength(9);
      }
  });

  it('contain the partial text when the response fails, expires or is canceled', () => {
    const error = { code: 'worker_lost', message: 'The workers were lost.' };
    const begun = [queued, started, ...deltasOf(words.slice(0, 2))];
    const last = (...entries: Entry[]) => eventsOf(entries).at(-1);
    expect(last(...begun, { type: 'failed', outputs: [], error })).toMatchObject({
      type: 'response.failed',
      sequence_number: 8 + 6,
      response: {
        status: 'failed',
        error,
        usage: null,
        output: [{ status: 'incomplete', content: [{ text: 'a red ' }] }],
      },
    });
    expect(last(...begun, { type: 'expired', outputs: [] })).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'request_expired' } },
    });
    expect(last(...begun, { type: 'canceled', outputs: [] })).toMatchObject({
      type: 'response.failed',
      response: { status: 'cancelled', error: null },
    });
    expect(eventsOf([queued, { type: 'canceled', outputs: [] }])).toMatchObject([
      { type: 'response.created', sequence_number: 0 },
      { type: 'response.queued', sequence_number: 1 },
      { type: 'response.failed', sequence_number: 8, response: { status: 'cancelled', output: [] } },
    ]);
  });

  it('end with response.incomplete if the text was cut off, and with an empty message if there is no text', () => {
    const cut = { ...output, finish_reason: 'length' };
    const end: Entry[] = [
      { type: 'output', output: cut, chunkIndex: 0 },
      { type: 'succeeded', outputs: [cut] },
    ];
    expect(eventsOf([queued, started, delta(0, whole), ...end]).at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' }, completed_at: null },
    });
    expect(eventsOf([queued, started, ...ended]).map(({ sequence_number: number }) => number)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8,
    ]);
  });

  it('throw if the log has lost text', () => {
    expect(() => eventsOf([queued, started, delta(7, 'fox')])).toThrow('is no longer stored');
  });
});
