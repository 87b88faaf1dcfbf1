import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createClient } from './client.ts';
import type { RequestEvent } from './stream-event.ts';
import { collect, openClient, openClientWithFakeTimers, advanceUntilRequested } from './testing/open-client.ts';
import {
  type Answer,
  bytes,
  chunks,
  done,
  events,
  errorAnswer,
  frame,
  imageInfo,
  page,
  reset,
  silence,
} from './testing/scripted-server.ts';

const image = Uint8Array.from({ length: 40 }, (_value, index) => (index * 37) % 256);
const second = Uint8Array.from([1, 2, 3, 250]);
const preview = 'data:image/webp;base64,AAr/';
/** One image in four chunks, one in one chunk; the prompt's umlaut has two bytes. */
const frames: readonly string[] = [
  frame(1, 'queued', { queue_position: 0, attempt: 1, note: 'grün' }),
  frame(2, 'started', { attempt: 1 }),
  frame(3, 'progress', { index: 0, step: 1, total_steps: 4, progress: 0.25, preview }),
  ...chunks(4, 0, image, 12),
  ...chunks(8, 1, second, 12),
  frame(9, 'succeeded', { images: [imageInfo(0, image), imageInfo(1, second)] }),
  done,
];
const whole = frames.join('');
const after = (sequence: number): string => frames.slice(sequence).join('');
const namesOf = (list: readonly RequestEvent[]): string[] => list.map(({ type, id }) => `${type} ${id}`);
const expected = ['queued 1-0', 'started 2-0', 'progress 3-0', 'image 7-0', 'image 8-0', 'succeeded 9-0'];

/** Returns the differences between streams: the events, and the images' bytes. */
function seen(list: readonly RequestEvent[]): { names: string[]; images: Uint8Array[] } {
  return { names: namesOf(list), images: list.filter((event) => event.type === 'image').map(({ data }) => data) };
}

const everything = { names: expected, images: [image, second] };

/** Sends the events after `Last-Event-ID`, like the API. */
const honest: Answer = (response, request) => {
  const last = Number.parseInt(String(request.headers['last-event-id'] ?? '0'), 10);
  return events(after(last))(response, request);
};

describe('a stream', () => {
  it('yields typed events and complete images, and ends after [DONE]', async () => {
    const test = await openClient([events(whole, { ending: 'hang' })]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(seen(list)).toEqual(everything);
    expect(list[2]).toMatchObject({ type: 'progress', step: 1, total_steps: 4, progress: 0.25, preview });
    expect(list[4]).toEqual({
      type: 'image',
      id: '8-0',
      request_id: 'tiny-1',
      timestamp: '2026-01-01T00:00:00.000Z',
      ...imageInfo(1, second),
      data: second,
    });
    expect([test.requests.length, test.waits]).toEqual([1, []]);
  });

  it('drops and repeats nothing if the connection is cut at any byte, properly or not', async () => {
    const text = Buffer.from(whole);
    // All positions around line ends, and some positions within lines.
    const cuts = Array.from({ length: text.length + 1 }, (_value, cut) => cut).filter(
      (cut) => cut % 13 === 0 || text.subarray(Math.max(0, cut - 2), cut + 2).includes(10),
    );
    for (const [index, cut] of cuts.entries()) {
      const ending = index % 2 === 0 ? 'end' : 'reset';
      const test = await openClient([events(text.subarray(0, cut), { ending }), honest]);
      expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
      test.server.closeAllConnections();
    }
  });

  it('resumes from the last event if the connection is cut after any event, also within an image', async () => {
    const answers = frames.map((text, index) => events((frames[index - 2] ?? '') + text, { ending: 'reset' }));
    const test = await openClient(answers);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    const ids = [undefined, '1-0', '2-0', '3-0', '4-0', '5-0', '6-0', '7-0', '8-0'];
    expect(test.requests.map(({ last }) => last)).toEqual(ids);
    expect(new Set(test.waits)).toEqual(new Set([250]));
  });

  it('decodes single bytes, also of one multi-byte character', async () => {
    const error = { code: 'engine_failed', message: 'grün 😀' };
    const text = new TextEncoder().encode(frame(1, 'failed', { error }) + done);
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const byte of text) controller.enqueue(Uint8Array.of(byte));
      },
    });
    const fetch = async (): Promise<Response> =>
      new Response(body, { headers: { 'content-type': 'text/event-stream' } });
    const client = createClient({ baseUrl: '', fetch });
    expect(await collect(client.stream('tiny-1'))).toMatchObject([{ type: 'failed', error }]);
  });

  it('starts after the given event', async () => {
    const test = await openClient([honest]);
    const list = await collect(test.client.stream('tiny-1', { after: '7-0' }));
    expect(namesOf(list)).toEqual(expected.slice(4));
    expect(test.requests[0]!.last).toBe('7-0');
  });

  it('drops repeated events', async () => {
    const test = await openClient([events(frames.slice(0, 5).join('') + whole)]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    const again = await openClient([events(frames.slice(0, 5).join('')), events(whole)]);
    expect(seen(await collect(again.client.stream('tiny-1')))).toEqual(everything);
  });

  it('ignores comments and unknown event types', async () => {
    const text = `: hello\n\n${frames[0]}${frame(2, 'paused')}\uFEFF: heartbeat\n\n`;
    const test = await openClient([events(text), honest]);
    expect(namesOf(await collect(test.client.stream('tiny-1')))).toEqual([expected[0], ...expected.slice(2)]);
    expect(test.requests[1]!.last).toBe('2-0');
  });
});

describe('reconnecting', () => {
  it('backs off exponentially, and starts again after an event', async () => {
    const test = await openClient([reset, reset, reset, events(frames[0]!), reset, honest]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([250, 500, 1000, 250, 500]);
  });

  it('adds up to 50 % jitter, and waits at most 15 s plus that', async () => {
    const answers = [...Array.from({ length: 9 }, () => reset), honest];
    const test = await openClient(answers, { random: () => 1 });
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([375, 750, 1500, 3000, 6000, 12_000, 22_500, 22_500, 22_500]);
  });

  it('respects retry: and Retry-After', async () => {
    const drained = events(`${frames[0]}retry: 1000\n\n`);
    const test = await openClient([drained, errorAnswer(503, 'unavailable', { 'retry-after': '5' }), honest]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([1000, 5000]);
  });

  it('throws the last error after the maximum of connections without events', async () => {
    const test = await openClient([reset, events(''), errorAnswer(502, 'x')], { maxRetries: 2 });
    await expect(collect(test.client.stream('tiny-1'))).rejects.toMatchObject({ status: 502, code: 'x' });
    const cut = await openClient([events('', { ending: 'end' })], { maxRetries: 0 });
    await expect(collect(cut.client.stream('tiny-1'))).rejects.toMatchObject({ code: 'connection_failed' });
  });

  it('closes a silent connection and reconnects', async () => {
    const test = await openClientWithFakeTimers([events(frames[0]!, { ending: 'hang' }), honest], { silenceMs: 200 });
    const collecting = collect(test.client.stream('tiny-1'));
    await advanceUntilRequested(test, 2, 200);
    expect(seen(await collecting)).toEqual(everything);
  });

  it('reconnects if a server does not respond', async () => {
    const test = await openClientWithFakeTimers([silence(200), honest], { timeoutMs: 200 });
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
  });

  it.each(['reset', 'end'] as const)('does not reconnect if only [DONE] is missing, after %s', async (ending) => {
    const test = await openClient([events(frames.slice(0, -1).join(''), { ending })]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.requests.length).toBe(1);
  });

  it("throws permanent errors: 404, 410, a proxy's page", async () => {
    const notFound = await openClient([errorAnswer(404, 'request_not_found')]);
    await expect(collect(notFound.client.stream('x'))).rejects.toMatchObject({
      status: 404,
      code: 'request_not_found',
    });
    const gone = await openClient([events(frames[0]!), errorAnswer(410, 'request_gone')]);
    await expect(collect(gone.client.stream('x'))).rejects.toMatchObject({ status: 410, code: 'request_gone' });
    const html = await openClient([page(200)]);
    await expect(collect(html.client.stream('x'))).rejects.toMatchObject({ status: 200, code: 'invalid_answer' });
  });
});

/** One chunk of an image, sent as if it were all chunks. */
const short: Answer = (response) => {
  response.socket!.end(`HTTP/1.0 200 OK\r\nContent-Type: image/png\r\n\r\n\x01\x02`);
};

/** Half of the image. */
const cut: Answer = (response) => {
  response.writeHead(200, { 'content-length': image.length });
  response.write(image.subarray(0, 10), () => response.socket!.resetAndDestroy());
};

describe('an image', () => {
  const [first, ...others] = chunks(4, 0, image, 12);
  const succeeded = frame(9, 'succeeded', { images: [imageInfo(0, image)] });
  const parts = { start: frames.slice(0, 3).join(''), end: succeeded + done };

  it.each([
    ['the first', others.join('')],
    ['one in the middle', first! + others.slice(1).join('')],
    ['the last', first! + others.slice(0, -1).join('')],
    ['all', ''],
  ])('with a missing chunk, %s, is fetched from its url', async (_name, text) => {
    const test = await openClient([events(parts.start + text + parts.end), bytes(image)]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.map(({ type }) => type)).toEqual(['queued', 'started', 'progress', 'image', 'succeeded']);
    expect(list.find((event) => event.type === 'image')).toMatchObject({ index: 0, seed: 7, data: image });
    expect(test.requests.map(({ path }) => path)).toEqual(['/v1/predict/tiny-1/events', '/v1/predict/tiny-1/images/0']);
  });

  it('is fetched if a chunk was missing or damaged, over resets and a truncated body', async () => {
    for (const b64 of ['null', '"AAAA"', '"!"']) {
      const spoilt = first!.replace(/"b64":"[^"]*"/, `"b64":${b64}`);
      const text = parts.start + spoilt + others.join('') + parts.end;
      const test = await openClient([events(text), reset, cut, bytes(image)]);
      expect(seen(await collect(test.client.stream('tiny-1'))).images).toEqual([image]);
      expect(test.requests.length).toBe(4);
    }
  });

  it('is fetched again if it came truncated and without a length', async () => {
    const test = await openClient([events(parts.start + parts.end), short, bytes(image)]);
    expect(seen(await collect(test.client.stream('tiny-1'))).images).toEqual([image]);
  });

  it('of a lost attempt is assembled from the chunks of the next', async () => {
    const other = image.map((value) => value ^ 255);
    const [lost1, lost2] = chunks(3, 0, other, 12);
    const text = [
      frame(1, 'queued', { queue_position: 0, attempt: 1 }),
      frame(2, 'started', { attempt: 1 }),
      lost1! + lost2!,
      frame(5, 'queued', { queue_position: 0, attempt: 2 }),
      frame(6, 'started', { attempt: 2 }),
      ...chunks(7, 0, image, 12),
      frame(11, 'succeeded', { images: [imageInfo(0, image)] }) + done,
    ];
    const test = await openClient([events(text.join(''))]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.filter((event) => event.type === 'image')).toMatchObject([{ id: '10-0', data: image }]);
  });

  it('that another attempt makes again is not an error', async () => {
    const text = parts.start + others.join('') + frame(8, 'canceled') + done;
    const test = await openClient([events(text), errorAnswer(409, 'image_not_ready')]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.map(({ type }) => type)).toEqual(['queued', 'started', 'progress', 'canceled']);
  });

  it('before `after` is not sent again', async () => {
    const test = await openClient([events(parts.end)]);
    expect(namesOf(await collect(test.client.stream('tiny-1', { after: '7-0' })))).toEqual(['succeeded 9-0']);
  });
});

/** Sends one event, and leaves the connection open. */
function hanging(): { answer: Answer; closed: Promise<unknown> } {
  const requested = new EventEmitter();
  const closed = once(requested, 'close');
  const answer: Answer = (response, request) => {
    response.on('close', () => requested.emit('close'));
    return events(frames[0]!, { ending: 'hang' })(response, request);
  };
  return { answer, closed };
}

describe('an abort', () => {
  it("ends a stream that waits for events, with the signal's reason", async () => {
    const { answer, closed } = hanging();
    const test = await openClient([answer], { maxRetries: 0 });
    const stop = new AbortController();
    const stream = test.client.stream('tiny-1', { signal: stop.signal });
    expect((await stream.next()).value).toMatchObject({ type: 'queued' });
    const next = stream.next();
    stop.abort(new Error('enough'));
    await expect(next).rejects.toThrow('enough');
    await expect(closed).resolves.toEqual([]);
  });

  it('ends a stream that waits to reconnect', async () => {
    const stop = new AbortController();
    const test = await openClient([reset], { delay: undefined as never });
    const next = test.client.stream('tiny-1', { signal: stop.signal }).next();
    stop.abort();
    await expect(next).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('is not needed: leaving the loop closes the connection', async () => {
    const { answer, closed } = hanging();
    const test = await openClient([answer]);
    for await (const event of test.client.stream('tiny-1')) if (event.type === 'queued') break;
    await expect(closed).resolves.toEqual([]);
  });
});
