import { expect, it } from 'vitest';
import { readEvents } from './read-events.ts';

async function read(text: string): Promise<unknown[]> {
  const all: unknown[] = [];
  const chunks = (async function* () {
    yield await Promise.resolve(Buffer.from(text));
  })();
  for await (const event of readEvents(chunks, 1000)) all.push(event);
  return all;
}

it('gives out data, over several lines too, and a sign of life for each comment, until [DONE]', async () => {
  const data = 'event: a\ndata: {"a":\r\ndata: 1}\n\n: ping\n\n:\ndata:2\n\ndata: [DONE]\n\ndata: 3\n\n';
  expect(await read(data)).toEqual([{ a: 1 }, undefined, undefined, 2]);
});
