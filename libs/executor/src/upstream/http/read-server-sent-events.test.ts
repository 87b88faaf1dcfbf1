import { expect, it } from 'vitest';
import { readServerSentEvents } from './read-server-sent-events.ts';

async function read(text: string): Promise<unknown[]> {
  const all: unknown[] = [];
  const chunks = (async function* () {
    yield await Promise.resolve(Buffer.from(text));
  })();
  for await (const event of readServerSentEvents(chunks, 1000)) all.push(event);
  return all;
}

it('yields data, also over several lines, and undefined for each comment, until [DONE]', async () => {
  const data = 'event: a\ndata: {"a":\r\ndata: 1}\n\n: ping\n\n:\ndata:2\n\ndata: [DONE]\n\ndata: 3\n\n';
  expect(await read(data)).toEqual([{ a: 1 }, undefined, undefined, 2]);
});
