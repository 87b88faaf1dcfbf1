/** Replicate's own client, as npm has it, on an API whose worker is the test. */
import Replicate, { type FileOutput } from 'replicate';
import { readAttachments, readRequest } from '@darkroom/store';
import { expect, it } from 'vitest';
import { startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, halfWhite, openPictureApi, plain } from '../../apps/api/src/testing/pictures.ts';
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

it('cancels what waits', async () => {
  const { replicate } = await openPlayed();
  const { id } = await replicate.predictions.create({ model: 'darkroom/tiny', input: { prompt } });
  expect(await replicate.predictions.cancel(id)).toMatchObject({ id, status: 'canceled', output: null });
  expect(await replicate.predictions.cancel(id)).toMatchObject({ status: 'canceled' });
  const unknown = replicate.predictions.get('tiny-00000000000000000000000000');
  await expect(unknown).rejects.toMatchObject({ response: { status: 404 } });
});

it('polls on when the wait was too short, though it runs already', async () => {
  const { test, store, replicate } = await openPlayed();
  const seen: string[] = [];
  const waitS = 3;
  const output = replicate.run(
    'darkroom/tiny',
    { input: { prompt }, wait: { mode: 'block', timeout: waitS } },
    ({ status }) => seen.push(status),
  );
  const running = await runSoon(store);
  // It is time for the answer, which the client waits for no longer than it said.
  await expect
    .poll(() => {
      test.tick(waitS * 1000);
      return seen;
    })
    .toContain('processing');
  await running.output(0, Buffer.from('a picture'));
  await running.finish();
  const [file] = (await output) as FileOutput[];
  expect(await (await file!.blob()).text()).toBe('a picture');
  expect(seen[0]).toBe('starting');
});

it.each(['run', 'stream'] as const)('tells of a failure: %s', async (how) => {
  const { store, replicate } = await openPlayed();
  const watch = {
    run: () => replicate.run('darkroom/tiny', { input: { prompt } }),
    stream: () => drained(replicate.stream('darkroom/tiny', { input: { prompt } })),
  };
  const failing = watch[how]().catch((error: unknown) => error);
  const running = await runSoon(store);
  await running.finish({ state: 'failed', error: { code: 'out_of_memory', message: 'It was too large.' } });
  expect(String(await failing)).toContain('It was too large.');
});

it('begins with a picture and a mask, and shows where they are', async () => {
  const { store, replicate } = await openPlayed(openPictureApi);
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
  await expect(refused).rejects.toThrow('prompt_strength is 0.6, expected none without an image');
});
