/** Generation metadata in image files: requested with `metadata`, removed with `?metadata=false`. */
import { readMetadata } from '@darkroom/client';
import { encodeImage, withMetadata } from '@darkroom/imaging';
import { recipeOf, type ImageInput } from '@darkroom/kinds';
import { readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

async function inputOf({ store }: TestApi, id: string): Promise<ImageInput> {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return found.request.input as ImageInput;
}

async function parametersOf(test: TestApi, id: string): Promise<{ metadata?: boolean }> {
  const view = await test.api.request(`/v1/predict/${id}`);
  return ((await view.json()) as { parameters: { metadata?: boolean } }).parameters;
}

it('is embedded if the request asks for it', async () => {
  const test = await openTestApi();
  const [silent, asking] = [await test.submit(), await test.submit({ metadata: true })];
  expect(await inputOf(test, silent)).not.toHaveProperty('metadata');
  expect(await inputOf(test, asking)).toHaveProperty('metadata', true);
  expect(await parametersOf(test, silent)).not.toHaveProperty('metadata');
  expect(await parametersOf(test, asking)).toHaveProperty('metadata', true);
  expect(await inputOf(test, await test.submit({ metadata: false }))).not.toHaveProperty('metadata');
  const wrong = await test.post({ prompt: 'a fox', metadata: 'yes' });
  expect([wrong.status, errorSchema.parse(await wrong.json()).message]).toEqual([
    400,
    'metadata is "yes", expected true or false',
  ]);
});

it('metadata=false returns the same image without it, with its own ETag', async () => {
  const test = await openTestApi();
  const id = await test.submit({ metadata: true });
  await startWorker(test.store);
  const run = await runNext(test.store);
  const raw = { data: new Uint8Array(8 * 8 * 3).fill(77), facts: { width: 8, height: 8 } };
  const plain = await encodeImage(raw, { outputFormat: 'png', outputCompression: 100 });
  const { data } = withMetadata(plain, recipeOf('tiny', await inputOf(test, id), 42));
  await run.output(0, data);
  await run.finish();
  const fetched = async (query: string) => {
    const response = await test.api.request(`/v1/predict/${id}/images/0${query}`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(response.headers.get('content-length')).toBe(String(bytes.length));
    return { bytes, etag: response.headers.get('etag')! };
  };
  const whole = await fetched('');
  expect(readMetadata(whole.bytes)).toMatchObject({ prompt: 'a fox', seed: 42, model: 'tiny' });
  expect((await fetched('?metadata=true')).bytes).toEqual(whole.bytes);
  const stripped = await fetched('?metadata=false');
  expect(stripped.bytes).toEqual(Buffer.from(plain.data));
  expect(stripped.etag).not.toBe(whole.etag);
  const headers = { 'If-None-Match': stripped.etag };
  expect((await test.api.request(`/v1/predict/${id}/images/0?metadata=false`, { headers })).status).toBe(304);
  const wrong = await test.api.request(`/v1/predict/${id}/images/0?metadata=no`);
  expect([wrong.status, errorSchema.parse(await wrong.json()).error.param]).toEqual([400, 'metadata']);
});
