import { expect, it } from 'vitest';
import type { RequestEvent } from './stream-event.ts';
import { collect, openClient } from './testing/open-client.ts';
import { type Answer, done, events, errorAnswer, frame, json } from './testing/scripted-server.ts';

const facts = { prompt_tokens: 3, completion_tokens: 4, cached_tokens: 0, calls: 4 };
const end = (sequence: number, text: string, index = 0): string =>
  frame(sequence, 'text', { index, bytes: new TextEncoder().encode(text).length, finish_reason: 'stop', ...facts });
const delta = (sequence: number, offset: number, text: string, index = 0): string =>
  frame(sequence, 'delta', { index, offset, text, token_ids: [sequence] });
const snapshot = (sequence: number, offset: number, text: string): string =>
  frame(sequence, 'snapshot', { index: 0, offset, text, token_ids: [sequence], nfe: 1 });
const succeeded = (sequence: number): string =>
  frame(sequence, 'succeeded', { usage: {}, finish_reasons: ['stop'] }) + done;

/** Returns a short description of each event, such as `delta 0 a fox`. */
function read(list: readonly RequestEvent[]): string[] {
  return list.map((event) => {
    const offset = 'offset' in event ? ` ${event.offset}` : '';
    return `${event.type}${offset}${'text' in event ? ` ${event.text}` : ''}`;
  });
}

/** Sends the events after `Last-Event-ID`, like the API. */
function honest(frames: readonly string[]): Answer {
  return (response, request) => {
    const last = Number.parseInt(String(request.headers['last-event-id'] ?? '0'), 10);
    return events(frames.slice(last).join(''))(response, request);
  };
}

async function streamed(frames: readonly string[], after?: string): Promise<RequestEvent[]> {
  const { client } = await openClient([events(frames.join(''))]);
  return collect(client.stream('tiny-1', { after }));
}

const written = [
  delta(1, 0, 'ein grü'),
  delta(2, 7, 'ner '),
  delta(3, 11, '🦊'),
  end(4, 'ein grüner 🦊'),
  succeeded(5),
];
const asRead = ['delta 0 ein grü', 'delta 7 ner ', 'delta 11 🦊', 'text ein grüner 🦊', 'succeeded'];

it('yields each chunk of a text once, and then the complete text', async () => {
  const list = await streamed(written);
  expect(read(list)).toEqual(asRead);
  expect(list[0]).toMatchObject({ index: 0, token_ids: [1] });
  expect(list[3]).toMatchObject({ type: 'text', index: 0, text: 'ein grüner 🦊', bytes: 16, finish_reason: 'stop' });
});

it('drops and repeats nothing if the connection is cut at any byte', async () => {
  const bytes = Buffer.from(written.join(''));
  for (let cut = 0; cut <= bytes.length; cut += 7) {
    const ending = cut % 2 === 0 ? 'end' : 'reset';
    const test = await openClient([events(bytes.subarray(0, cut), { ending }), honest(written)]);
    expect(read(await collect(test.client.stream('tiny-1')))).toEqual(asRead);
    test.server.closeAllConnections();
  }
});

it('omits text that a worker that takes over writes again', async () => {
  const list = await streamed([
    delta(1, 0, 'a fox '),
    delta(2, 6, 'on '),
    delta(3, 0, 'a fo'),
    delta(4, 4, 'x on the moon'),
    end(5, 'a fox on the moon'),
    end(6, 'a fox on the moon'),
    succeeded(7),
  ]);
  expect(read(list)).toEqual([
    'delta 0 a fox ',
    'delta 6 on ',
    'delta 9 the moon',
    'text a fox on the moon',
    'succeeded',
  ]);
  // The ids came with a longer chunk.
  expect(list[2]).not.toHaveProperty('token_ids');
});

it('resets text that a worker that takes over wrote differently', async () => {
  const list = await streamed([
    delta(1, 0, 'a fox on'),
    frame(2, 'reset', { index: 0, offset: 2 }),
    delta(3, 2, 'cat'),
    end(4, 'a cat'),
    succeeded(5),
  ]);
  expect(read(list)).toEqual(['delta 0 a fox on', 'reset 2', 'delta 2 cat', 'text a cat', 'succeeded']);
});

it('yields snapshots of a block that is written in place, and its final text once', async () => {
  const list = await streamed([
    snapshot(1, 0, 'a░ cake░'),
    snapshot(2, 0, 'a red cake░'),
    snapshot(3, 0, 'a red cake on'),
    snapshot(4, 13, '░ moon'),
    snapshot(5, 13, ' the moon'),
    end(6, 'a red cake on the moon'),
    succeeded(7),
  ]);
  expect(read(list)).toEqual([
    'snapshot 0 a░ cake░',
    'snapshot 0 a red cake░',
    'snapshot 0 a red cake on',
    'delta 0 a red cake on',
    'snapshot 13 ░ moon',
    'snapshot 13  the moon',
    'delta 13  the moon',
    'text a red cake on the moon',
    'succeeded',
  ]);
  expect([list[0], list[3]]).toMatchObject([{ nfe: 1, token_ids: [1] }, {}]);
  expect(list[3]).not.toHaveProperty('token_ids');
});

it('continues in a log that was compacted in the meantime', async () => {
  const shorter = [snapshot(3, 0, 'a fox on the'), delta(4, 12, ' moon'), end(5, 'a fox on the moon'), succeeded(6)];
  const test = await openClient([events(delta(1, 0, 'a fox ')), events(shorter.join(''))]);
  expect(read(await collect(test.client.stream('tiny-1')))).toEqual([
    'delta 0 a fox ',
    'snapshot 6 on the',
    'delta 6 on the moon',
    'text a fox on the moon',
    'succeeded',
  ]);
});

it('fetches a text if the stream started after its first chunks, separately for each text', async () => {
  const texts = ['zero', 'one two'].map((text, index) => ({ index, text }));
  const frames = [delta(4, 4, 'two', 1), end(5, 'one two', 1), end(6, 'zero'), succeeded(7)];
  const view = json(200, { request_id: 'tiny-1', texts });
  const test = await openClient([events(frames.join('')), errorAnswer(503, 'unavailable'), view, view]);
  const list = await collect(test.client.stream('tiny-1', { after: '3-0' }));
  expect(read(list)).toEqual(['delta 4 two', 'text one two', 'text zero', 'succeeded']);
  expect(test.requests.map(({ path }) => path).slice(1)).toEqual(Array.from({ length: 3 }, () => '/v1/predict/tiny-1'));
});

it('omits a text that expired before it could be fetched', async () => {
  const test = await openClient([events(end(3, 'gone') + succeeded(4)), errorAnswer(410, 'request_gone')]);
  expect(read(await collect(test.client.stream('tiny-1', { after: '2-0' })))).toEqual(['succeeded']);
});

it('takes the first part of a text from a worker that takes over, if the stream started after it', async () => {
  const frames = [
    delta(4, 4, 'two'),
    delta(5, 0, 'one tw'),
    delta(6, 6, 'o three'),
    end(7, 'one two three'),
    succeeded(8),
  ];
  const test = await openClient([events(frames.join(''))]);
  expect(read(await collect(test.client.stream('tiny-1', { after: '3-0' })))).toEqual([
    'delta 4 two',
    'delta 7  three',
    'text one two three',
    'succeeded',
  ]);
  expect(test.requests).toHaveLength(1);
});

it('fetches a text if its bytes differ from the received chunks', async () => {
  const view = json(200, { request_id: 'tiny-1', texts: [{ index: 0, text: 'a fox' }] });
  const test = await openClient([events([delta(1, 0, 'a '), end(2, 'a fox'), succeeded(3)].join('')), view]);
  expect(read(await collect(test.client.stream('tiny-1')))).toEqual(['delta 0 a ', 'text a fox', 'succeeded']);
});
