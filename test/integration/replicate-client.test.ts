/** The npm package `replicate` against an API whose worker is played by the test. */
import Replicate, { type FileOutput } from 'replicate';
import { readAttachments, readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, halfWhite, openImageApi, plain } from '../../apps/api/src/testing/images.ts';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';
import { runSoon } from './run-soon.ts';

const prompt = 'a red apple on a white background';

async function openPlayed(open = openTestApi) {
  const test = await open();
  await startWorker(test.store);
  const { url } = await listen(test);
  return { test, store: test.store, replicate: new Replicate({ auth: 'r8_secret', baseUrl: `${url}/replicate/v1` }) };
}

async function drained(items: AsyncIterable<unknown>): Promise<void> {
  for await (const item of items) expect(item).toBeDefined();
}

it('replicate client: cancels a queued prediction, twice with the same result; an unknown id is a 404', async () => {
  const { replicate } = await openPlayed();
  const { id } = await replicate.predictions.create({ model: 'darkroom/tiny', input: { prompt } });
  expect(await replicate.predictions.cancel(id)).toMatchObject({ id, status: 'canceled', output: null });
  expect(await replicate.predictions.cancel(id)).toMatchObject({ status: 'canceled' });
  const unknown = replicate.predictions.get('tiny-00000000000000000000000000');
  await expect(unknown).rejects.toMatchObject({ response: { status: 404 } });
});

it('replicate client: keeps polling when `wait` times out while the request runs', async () => {
  const { test, store, replicate } = await openPlayed();
  const seen: string[] = [];
  const waitS = 3;
  const output = replicate.run(
    'darkroom/tiny',
    { input: { prompt }, wait: { mode: 'block', timeout: waitS } },
    ({ status }) => seen.push(status),
  );
  const running = await runSoon(store);
  // The API answers after `wait`; the client waits no longer than that.
  await expect
    .poll(() => {
      test.tick(waitS * 1000);
      return seen;
    })
    .toContain('processing');
  await running.output(0, Buffer.from('an image'));
  await running.finish();
  const [file] = (await output) as FileOutput[];
  expect(await (await file!.blob()).text()).toBe('an image');
  expect(seen[0]).toBe('starting');
});

it.each(['run', 'stream'] as const)(
  'replicate client: a failed prediction rejects with its message: %s',
  async (how) => {
    const { store, replicate } = await openPlayed();
    const watch = {
      run: () => replicate.run('darkroom/tiny', { input: { prompt } }),
      stream: () => drained(replicate.stream('darkroom/tiny', { input: { prompt } })),
    };
    const failing = watch[how]().catch((error: unknown) => error);
    const running = await runSoon(store);
    await running.finish({ state: 'failed', error: { code: 'out_of_memory', message: 'It was too large.' } });
    expect(String(await failing)).toContain('It was too large.');
  },
);

it("replicate client: accepts an init image with a mask, and links them in the prediction's input", async () => {
  const { store, replicate } = await openPlayed(openImageApi);
  const input = {
    prompt,
    image: await dataUrl(plain(64, 96)),
    mask: await dataUrl(halfWhite(64, 96)),
    prompt_strength: 0.6,
  };
  const { id, input: shown } = await replicate.predictions.create({ model: 'darkroom/tiny', input });
  const wanted = { width: 64, height: 96, image: true, mask: true, strength: 0.6 };
  expect(await readRequest(store, id)).toMatchObject({ request: { input: wanted } });
  expect((await readAttachments(store, id)).size).toBe(2);
  const { image } = shown as { image: string };
  expect(image).toMatch(new RegExp(`^http://.*/v1/predict/${id}/inputs/image$`));
  expect((await fetch(image)).headers.get('content-type')).toBe('image/png');
  const refused = replicate.predictions.create({ model: 'darkroom/tiny', input: { prompt, prompt_strength: 0.6 } });
  await expect(refused).rejects.toThrow('prompt_strength is 0.6, expected an image too');
});
