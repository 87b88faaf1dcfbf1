/** `Accept: text/plain` over real connections: complete and aborted chunked answers. */
import { readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { listen } from '../testing/listen.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openImageAndTextApi, runNextText, textFacts, textModel } from '../testing/text-model.ts';

const prompt = 'once upon a time';
const plain = { Accept: 'text/plain' };

async function connect(mode: 'autoregressive' | 'block_diffusion' = 'autoregressive') {
  const test = await openImageAndTextApi(mode);
  const { url } = await listen(test);
  return {
    test,
    post: (body: object, headers: Record<string, string> = plain) =>
      fetch(`${url}/v1/predict`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers },
        body: JSON.stringify({ model: textModel, ...body }),
      }),
    get: (id: string, headers: Record<string, string> = plain) => fetch(`${url}/v1/predict/${id}`, { headers }),
  };
}

const done = { finish_reason: 'stop', completion_tokens: 4, calls: 4 } as const;

function piece(offset: number, text: string, doneTokens: number) {
  return { type: 'delta', offset, text, done: doneTokens, facts: { ids: '7,' } } as const;
}

/** Returns a function that reads the next chunk; undefined at the end. Rejects if the connection is aborted. */
function reader(response: Response): () => Promise<string | undefined> {
  const chunks = response.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  return async () => {
    const next = await chunks.next();
    return next.done === true ? undefined : next.value;
  };
}

async function storedCount({ store }: TestApi): Promise<number> {
  return (await allKeys(store)).filter((key) => key.startsWith(store.keysOf(textModel).request(''))).length;
}

describe('a plain text', () => {
  it('is streamed in chunks as it is generated, with a complete end', async () => {
    const { test, post, get } = await connect();
    const response = await post({ prompt });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    const id = response.headers.get('x-request-id')!;
    expect(response.headers.get('location')).toBe(`/v1/predict/${id}`);
    const run = await runNextText(test);
    const next = reader(response);
    await run.entry(piece(0, 'a “red', 1));
    expect(await next()).toBe('a “red');
    await run.progress(1);
    await run.entry(piece(6, ' fox”\n', 2));
    expect(await next()).toBe(' fox”\n');
    // A later client reads the text from the start.
    const late = reader(await get(id));
    let read = '';
    while (read.length < 12) read += await late();
    expect(read).toBe('a “red fox”\n');
    test.tick(15_000);
    await run.output(0, Buffer.from('a “red fox”\n'), 100, textFacts(done));
    await run.finish();
    expect([await next(), await late()]).toEqual([undefined, undefined]);
    const after = await get(id);
    expect([after.status, await after.text()]).toEqual([200, 'a “red fox”\n']);
  });

  it('contains blocks of block diffusion once they are final', async () => {
    const { test, post } = await connect('block_diffusion');
    const next = reader(await post({ prompt }));
    const run = await runNextText(test);
    await run.entry({ type: 'snapshot', offset: 0, text: 'a░', done: 1, facts: { ids: '7,3,', calls: 1 } });
    await run.entry({
      type: 'snapshot',
      offset: 0,
      text: 'a fox',
      done: 2,
      facts: { ids: '7,8,', calls: 2, settled: 1 },
    });
    expect(await next()).toBe('a fox');
    await run.output(0, Buffer.from('a fox'), 100, textFacts(done));
    await run.finish();
    expect(await next()).toBeUndefined();
  });

  it('aborts the connection if the text does not complete', async () => {
    const { test, post, get } = await connect();
    const response = await post({ prompt });
    const next = reader(response);
    const run = await runNextText(test);
    await run.entry(piece(0, 'a red', 1));
    expect(await next()).toBe('a red');
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'it broke' } });
    await expect(next()).rejects.toThrow('terminated');
    const after = await get(response.headers.get('x-request-id')!);
    expect([after.status, errorSchema.parse(await after.json()).error.code]).toEqual([422, 'engine_failed']);
  });

  it('aborts the connection when the server stops; the request continues', async () => {
    const { test, post } = await connect();
    const response = await post({ prompt });
    const next = reader(response);
    const run = await runNextText(test);
    await run.entry(piece(0, 'a red', 1));
    expect(await next()).toBe('a red');
    test.draining.abort();
    await expect(next()).rejects.toThrow('terminated');
    const id = response.headers.get('x-request-id')!;
    expect(await readRequest(test.store, id)).toMatchObject({ request: { state: 'running', isCanceling: false } });
  });

  it('continues after its client disconnects', async () => {
    const { test, post } = await connect();
    const response = await post({ prompt });
    await response.body!.cancel();
    await expect.poll(() => test.hub.size).toBe(0);
    const id = response.headers.get('x-request-id')!;
    expect(await readRequest(test.store, id)).toMatchObject({ request: { state: 'queued' } });
  });

  it('requires n = 1, on submit and for stored requests', async () => {
    const { test, post, get } = await connect();
    const refused = await post({ prompt, n: 2 });
    const message = 'n is 2, expected 1 with Accept: text/plain; use events or JSON for several texts';
    expect([refused.status, await refused.json()]).toMatchObject([400, { message }]);
    expect(await storedCount(test)).toBe(0);
    const stored = await post({ prompt, n: 2 }, {});
    const { request_id: id } = (await stored.json()) as { request_id: string };
    const several = await get(id);
    expect([several.status, await several.json()]).toMatchObject([400, { message }]);
  });

  it('needs a preferred Accept: text/plain and a text request', async () => {
    const { post, get } = await connect();
    const types: (string | null)[] = [];
    for (const Accept of ['*/*', 'application/json, text/plain, */*', 'text/plain;q=0.5, application/json'])
      types.push((await post({ prompt }, { Accept })).headers.get('content-type'));
    types.push((await post({ prompt, model: 'tiny' })).headers.get('content-type'));
    expect(types).toEqual(Array.from({ length: 4 }, () => 'application/json'));
    const image = await post({ prompt, model: 'tiny' }, {});
    const { request_id: id } = (await image.json()) as { request_id: string };
    expect((await get(id)).headers.get('content-type')).toBe('application/json');
    expect((await post({ prompt, model: 'nobody' })).status).toBe(404);
    expect((await post({})).status).toBe(400);
  });
});
