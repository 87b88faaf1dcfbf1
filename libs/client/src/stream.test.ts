import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createClient } from './client.ts';
import type { RequestEvent } from './stream-event.ts';
import { collect, openClient, openPatientClient, passUntilAsked } from './testing/open-client.ts';
import {
  type Answer,
  bytes,
  chunks,
  done,
  events,
  failure,
  frame,
  imageInfo,
  page,
  reset,
  silence,
} from './testing/scripted-server.ts';

const picture = Uint8Array.from({ length: 40 }, (_value, index) => (index * 37) % 256);
const second = Uint8Array.from([1, 2, 3, 250]);
const preview = 'data:image/webp;base64,AAr/';
/** A picture in four chunks, and one in one; the prompt's umlaut is two bytes. */
const frames: readonly string[] = [
  frame(1, 'queued', { queue_position: 0, attempt: 1, note: 'grün' }),
  frame(2, 'started', { attempt: 1 }),
  frame(3, 'progress', { index: 0, step: 1, total_steps: 4, progress: 0.25, preview }),
  ...chunks(4, 0, picture, 12),
  ...chunks(8, 1, second, 12),
  frame(9, 'succeeded', { images: [imageInfo(0, picture), imageInfo(1, second)] }),
  done,
];
const whole = frames.join('');
const after = (sequence: number): string => frames.slice(sequence).join('');
const namesOf = (list: readonly RequestEvent[]): string[] => list.map(({ type, id }) => `${type} ${id}`);
const expected = ['queued 1-0', 'started 2-0', 'progress 3-0', 'image 7-0', 'image 8-0', 'succeeded 9-0'];

/** What tells one stream from another: the events, and the pictures' bytes. */
function seen(list: readonly RequestEvent[]): { names: string[]; pictures: Uint8Array[] } {
  return { names: namesOf(list), pictures: list.filter((event) => event.type === 'image').map(({ data }) => data) };
}

const everything = { names: expected, pictures: [picture, second] };

/** Serves what follows `Last-Event-ID`, as the API does. */
const honest: Answer = (response, request) => {
  const last = Number.parseInt(String(request.headers['last-event-id'] ?? '0'), 10);
  return events(after(last))(response, request);
};

describe('a stream', () => {
  it('yields typed events and whole pictures, and ends after [DONE]', async () => {
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
    expect([test.asked.length, test.waits]).toEqual([1, []]);
  });

  it('cut in the middle of anything, properly or not, drops nothing and repeats nothing', async () => {
    const text = Buffer.from(whole);
    // Everywhere around the ends of lines, and here and there inside.
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

  it('cut after every event goes on from the last one, inside a picture too', async () => {
    const answers = frames.map((text, index) => events((frames[index - 2] ?? '') + text, { ending: 'reset' }));
    const test = await openClient(answers);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    const ids = [undefined, '1-0', '2-0', '3-0', '4-0', '5-0', '6-0', '7-0', '8-0'];
    expect(test.asked.map(({ last }) => last)).toEqual(ids);
    expect(new Set(test.waits)).toEqual(new Set([250]));
  });

  it('takes bytes one by one, also those of one letter', async () => {
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

  it('begins after the given event', async () => {
    const test = await openClient([honest]);
    const list = await collect(test.client.stream('tiny-1', { after: '7-0' }));
    expect(namesOf(list)).toEqual(expected.slice(4));
    expect(test.asked[0]!.last).toBe('7-0');
  });

  it('drops what a server sends again', async () => {
    const test = await openClient([events(frames.slice(0, 5).join('') + whole)]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    const again = await openClient([events(frames.slice(0, 5).join('')), events(whole)]);
    expect(seen(await collect(again.client.stream('tiny-1')))).toEqual(everything);
  });

  it('passes over events of later versions, and comments', async () => {
    const text = `: hello\n\n${frames[0]}${frame(2, 'paused')}\uFEFF: heartbeat\n\n`;
    const test = await openClient([events(text), honest]);
    expect(namesOf(await collect(test.client.stream('tiny-1')))).toEqual([expected[0], ...expected.slice(2)]);
    expect(test.asked[1]!.last).toBe('2-0');
  });
});

describe('coming back', () => {
  it('waits longer each time, and from the start again after an event', async () => {
    const test = await openClient([reset, reset, reset, events(frames[0]!), reset, honest]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([250, 500, 1000, 250, 500]);
  });

  it('adds up to half by chance, and never waits more than 15 s and that', async () => {
    const answers = [...Array.from({ length: 9 }, () => reset), honest];
    const test = await openClient(answers, { random: () => 1 });
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([375, 750, 1500, 3000, 6000, 12_000, 22_500, 22_500, 22_500]);
  });

  it('honours retry: and Retry-After', async () => {
    const drained = events(`${frames[0]}retry: 1000\n\n`);
    const test = await openClient([drained, failure(503, 'unavailable', { 'retry-after': '5' }), honest]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.waits).toEqual([1000, 5000]);
  });

  it('gives up after so many that brought nothing, with the last reason', async () => {
    const test = await openClient([reset, events(''), failure(502, 'x')], { maxRetries: 2 });
    await expect(collect(test.client.stream('tiny-1'))).rejects.toMatchObject({ status: 502, code: 'x' });
    const cut = await openClient([events('', { ending: 'end' })], { maxRetries: 0 });
    await expect(collect(cut.client.stream('tiny-1'))).rejects.toMatchObject({ code: 'connection_failed' });
  });

  it('leaves a connection that has gone silent', async () => {
    const test = await openPatientClient([events(frames[0]!, { ending: 'hang' }), honest], { silenceMs: 200 });
    const collecting = collect(test.client.stream('tiny-1'));
    await passUntilAsked(test, 2, 200);
    expect(seen(await collecting)).toEqual(everything);
  });

  it('leaves a server that does not answer', async () => {
    const test = await openPatientClient([silence(200), honest], { timeoutMs: 200 });
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
  });

  it.each(['reset', 'end'] as const)('does not come back for the [DONE] alone, after %s', async (ending) => {
    const test = await openClient([events(frames.slice(0, -1).join(''), { ending })]);
    expect(seen(await collect(test.client.stream('tiny-1')))).toEqual(everything);
    expect(test.asked.length).toBe(1);
  });

  it('stops at what does not pass: 404, 410, a page of a proxy', async () => {
    const notFound = await openClient([failure(404, 'request_not_found')]);
    await expect(collect(notFound.client.stream('x'))).rejects.toMatchObject({
      status: 404,
      code: 'request_not_found',
    });
    const gone = await openClient([events(frames[0]!), failure(410, 'request_gone')]);
    await expect(collect(gone.client.stream('x'))).rejects.toMatchObject({ status: 410, code: 'request_gone' });
    const html = await openClient([page(200)]);
    await expect(collect(html.client.stream('x'))).rejects.toMatchObject({ status: 200, code: 'invalid_answer' });
  });
});

/** Some of a picture, as if it were all. */
const short: Answer = (response) => {
  response.socket!.end(`HTTP/1.0 200 OK\r\nContent-Type: image/png\r\n\r\n\x01\x02`);
};

/** Half of the picture. */
const cut: Answer = (response) => {
  response.writeHead(200, { 'content-length': picture.length });
  response.write(picture.subarray(0, 10), () => response.socket!.resetAndDestroy());
};

describe('a picture', () => {
  const [first, ...others] = chunks(4, 0, picture, 12);
  const succeeded = frame(9, 'succeeded', { images: [imageInfo(0, picture)] });
  const parts = { start: frames.slice(0, 3).join(''), end: succeeded + done };

  it.each([
    ['the first', others.join('')],
    ['one in the middle', first! + others.slice(1).join('')],
    ['the last', first! + others.slice(0, -1).join('')],
    ['all', ''],
  ])('lacking a chunk, %s, is fetched from its url', async (_name, text) => {
    const test = await openClient([events(parts.start + text + parts.end), bytes(picture)]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.map(({ type }) => type)).toEqual(['queued', 'started', 'progress', 'image', 'succeeded']);
    expect(list.find((event) => event.type === 'image')).toMatchObject({ index: 0, seed: 7, data: picture });
    expect(test.asked.map(({ path }) => path)).toEqual(['/v1/predict/tiny-1/events', '/v1/predict/tiny-1/images/0']);
  });

  it('whose chunk was gone or spoilt is fetched, over resets and a cut body', async () => {
    for (const b64 of ['null', '"AAAA"', '"!"']) {
      const spoilt = first!.replace(/"b64":"[^"]*"/, `"b64":${b64}`);
      const text = parts.start + spoilt + others.join('') + parts.end;
      const test = await openClient([events(text), reset, cut, bytes(picture)]);
      expect(seen(await collect(test.client.stream('tiny-1'))).pictures).toEqual([picture]);
      expect(test.asked.length).toBe(4);
    }
  });

  it('fetched without a length is whole, or fetched again', async () => {
    const test = await openClient([events(parts.start + parts.end), short, bytes(picture)]);
    expect(seen(await collect(test.client.stream('tiny-1'))).pictures).toEqual([picture]);
  });

  it('of a lost attempt is put together from the chunks of the next', async () => {
    const other = picture.map((value) => value ^ 255);
    const [lost1, lost2] = chunks(3, 0, other, 12);
    const text = [
      frame(1, 'queued', { queue_position: 0, attempt: 1 }),
      frame(2, 'started', { attempt: 1 }),
      lost1! + lost2!,
      frame(5, 'queued', { queue_position: 0, attempt: 2 }),
      frame(6, 'started', { attempt: 2 }),
      ...chunks(7, 0, picture, 12),
      frame(11, 'succeeded', { images: [imageInfo(0, picture)] }) + done,
    ];
    const test = await openClient([events(text.join(''))]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.filter((event) => event.type === 'image')).toMatchObject([{ id: '10-0', data: picture }]);
  });

  it('that another attempt makes again is no error', async () => {
    const text = parts.start + others.join('') + frame(8, 'canceled') + done;
    const test = await openClient([events(text), failure(409, 'image_not_ready')]);
    const list = await collect(test.client.stream('tiny-1'));
    expect(list.map(({ type }) => type)).toEqual(['queued', 'started', 'progress', 'canceled']);
  });

  it('seen before `after` is not brought again', async () => {
    const test = await openClient([events(parts.end)]);
    expect(namesOf(await collect(test.client.stream('tiny-1', { after: '7-0' })))).toEqual(['succeeded 9-0']);
  });
});

/** Sends one event, and no more. */
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
  it('ends a stream that waits for events, with the reason', async () => {
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

  it('ends a stream that waits to come back', async () => {
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
