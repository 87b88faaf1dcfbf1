/** The npm package `@fal-ai/client` against an API whose worker is played by the test. */
import { ApiError, createFalClient } from '@fal-ai/client';
import { readAttachments, readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, halfWhite, openImageApi, plain } from '../../apps/api/src/testing/images.ts';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';
import { runSoon } from './run-soon.ts';

const endpoint = 'darkroom/tiny';
const prompt = 'a red apple on a white background';

async function openPlayed(open = openTestApi) {
  const test = await open();
  await startWorker(test.store);
  const { url } = await listen(test);
  const fal = createFalClient({ credentials: 'id:secret', proxyUrl: { url: `${url}/fal/proxy`, when: 'always' } });
  return { store: test.store, fal };
}

async function rejection(work: Promise<unknown>): Promise<ApiError<{ detail: unknown; error_type: string }>> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError<{ detail: unknown; error_type: string }>;
}

it('fal client: cancels a queued request, and reports ALREADY_COMPLETED for one that has ended', async () => {
  const { fal } = await openPlayed();
  await fal.queue.submit(endpoint, { input: { prompt } });
  const { request_id: requestId, queue_position } = await fal.queue.submit(endpoint, { input: { prompt } });
  expect(queue_position).toBe(1);
  expect(await rejection(fal.queue.result(endpoint, { requestId }))).toMatchObject({
    status: 400,
    message: 'Request is still in progress',
    requestId,
  });
  await fal.queue.cancel(endpoint, { requestId });
  expect(await fal.queue.status(endpoint, { requestId })).toMatchObject({
    status: 'COMPLETED',
    error_type: 'client_cancelled',
  });
  expect(await rejection(fal.queue.result(endpoint, { requestId }))).toMatchObject({ status: 499 });
  expect(await rejection(fal.queue.cancel(endpoint, { requestId }))).toMatchObject({
    status: 400,
    body: { status: 'ALREADY_COMPLETED' },
  });
});

it.each(['polling', 'streaming', 'run', 'stream'] as const)(
  'fal client: a failed request rejects with its error: %s',
  async (how) => {
    const { store, fal } = await openPlayed();
    const input = { prompt };
    const watch = {
      polling: () => fal.subscribe(endpoint, { input, pollInterval: 20 }),
      streaming: () => fal.subscribe(endpoint, { input, mode: 'streaming' }),
      run: () => fal.run(endpoint, { input }),
      stream: async () => (await fal.stream(endpoint, { input })).done(),
    };
    const failing = rejection(watch[how]());
    const running = await runSoon(store);
    await running.finish({ state: 'failed', error: { code: 'out_of_memory', message: 'It was too large.' } });
    // A stream has sent its headers already, so the API can only close the connection.
    expect(await failing).toMatchObject(
      how === 'stream'
        ? { status: 500, message: 'terminated' }
        : {
            status: 424,
            message: 'It was too large.',
            body: { error_type: 'out_of_memory' },
          },
    );
  },
);

it("fal client: accepts an init image with a mask, and reports errors about them by fal's field names", async () => {
  const { store, fal } = await openPlayed(openImageApi);
  const images = { image_url: await dataUrl(plain(64, 96)), mask_url: await dataUrl(halfWhite(64, 96)) };
  const { request_id: id } = await fal.queue.submit(endpoint, { input: { prompt, strength: 0.6, ...images } });
  const wanted = { width: 64, height: 96, image: true, mask: true, strength: 0.6 };
  expect(await readRequest(store, id)).toMatchObject({ request: { input: wanted } });
  expect((await readAttachments(store, id)).size).toBe(2);
  const wrong = { ...images, image_url: 'https://127.0.0.1/x.png' };
  expect((await rejection(fal.run(endpoint, { input: { prompt, ...wrong } }))).body.detail).toMatchObject([
    {
      loc: ['body', 'image_url'],
      msg: expect.stringMatching(/^image_url is .* which leads to an address that is not public/),
    },
  ]);
});
