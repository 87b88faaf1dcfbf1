/**
 * The page's Write view while text is generated. The bundled models finish in a tenth of a second, so here the test
 * plays the worker and writes one delta at a time, on an API of its own with their model cards and tokenizers.
 */
import { EventEmitter, once } from 'node:events';
import type { ModelCard } from '@darkroom/core';
import { listModels, publishModel, readAsset, registerWorker } from '@darkroom/store';
import type { TextCard } from '@darkroom/kinds';
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { NothingWaits, type RunningRequest, runNext } from '../../apps/api/src/testing/fake-worker.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { openTestApi, type TestApi } from '../../apps/api/src/testing/test-api.ts';
import { useChromium, type OpenPageOptions } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';
import { answerOf, openWrite, send, turnOf } from './write-view.ts';

const system = useSharedSystem();
const browser = useChromium();
const facts = { finish_reason: 'stop', prompt_tokens: 14, completion_tokens: 8, cached_tokens: 0, calls: 8 };

async function openSlow(options?: OpenPageOptions): Promise<{ test: TestApi; page: Page }> {
  const test = await openTestApi();
  for (const card of (await listModels(system.store)) as ModelCard[]) {
    if (card.kind !== 'text') continue;
    const { id, codec: name } = card as TextCard;
    const bytes = await readAsset(system.store, id, name);
    await publishModel(test.store, card, { name, bytes: bytes! });
    const identity = { shard: id, workerId: 'w1', incarnation: 'first' };
    await registerWorker(test.store, identity, { state: 'ready', capacity: 10_000, info: { device: 'cpu' } });
  }
  const { url } = await listen(test);
  return { test, page: await openWrite(browser(), url, options) };
}

/** Takes the request that the page has sent or is about to send. */
async function taken({ store }: TestApi, model = 'emoji-writer'): Promise<RunningRequest> {
  let running: RunningRequest | undefined;
  const take = async (): Promise<RunningRequest | undefined> => {
    try {
      return (running = await runNext(store, model));
    } catch (error) {
      if (error instanceof NothingWaits) return undefined;
      throw error;
    }
  };
  await expect.poll(take).toBeDefined();
  return running!;
}

async function finish(running: RunningRequest, text: string): Promise<void> {
  await running.output(0, Buffer.from(text), undefined, facts);
  await running.finish();
}

async function writeAll(running: RunningRequest, text: string): Promise<void> {
  await running.entry({ type: 'delta', offset: 0, text });
  await finish(running, text);
}

/** Holds the page's POSTs until they are released. */
function holdPosts(page: Page): { held: Promise<void>; release: () => void } {
  const gate = new EventEmitter();
  const held = once(gate, 'held').then(() => {});
  const released = once(gate, 'released');
  void page.route('**/v1/predict', async (route) => {
    gate.emit('held');
    await released;
    await route.continue();
  });
  return { held, release: () => gate.emit('released') };
}

function words(page: Page, message: string): Promise<string | null> {
  return answerOf(turnOf(page, message)).textContent();
}

it('shows text as it is generated, and resumes in the middle of a word after a reload', async () => {
  const { test, page } = await openSlow();
  const turn = await send(page, 'something sweet');
  await turn.getByText('Next in the queue').waitFor();
  const running = await taken(test);
  await running.entry({ type: 'delta', offset: 0, text: 'a birth' });
  await expect.poll(() => words(page, 'something sweet')).toBe('a birth');
  await turn.getByText('Writing…').waitFor();
  await page.reload();
  await expect.poll(() => words(page, 'something sweet')).toBe('a birth');
  await running.entry({ type: 'delta', offset: 7, text: 'day cake' });
  await expect.poll(() => words(page, 'something sweet')).toBe('a birthday cake');
  await finish(running, 'a birthday cake');
  await turn.getByText(/^8 tokens in .* · emoji-writer · seed \d+$/).waitFor();
  expect(await words(page, 'something sweet')).toBe('a birthday cake');
});

it('shows a diffusion block change from masks to words', async () => {
  const { test, page } = await openSlow();
  await page.getByRole('radio', { name: /diffusion/ }).check();
  const turn = await send(page, 'something sweet');
  const running = await taken(test, 'emoji-writer-diffusion');
  await running.entry({ type: 'snapshot', offset: 0, text: 'a░ cake░░' });
  await expect.poll(() => words(page, 'something sweet')).toBe('a░ cake░░');
  expect(await turn.locator('.mask').allTextContents()).toEqual(['░', '░░']);
  await running.entry({ type: 'snapshot', offset: 0, text: 'a birthday cake on░' });
  await expect.poll(() => words(page, 'something sweet')).toBe('a birthday cake on░');
  await running.entry({ type: 'snapshot', offset: 0, text: 'a birthday cake on pink' });
  await finish(running, 'a birthday cake on pink');
  await turn.getByRole('button', { name: 'Develop this' }).waitFor();
  expect([await words(page, 'something sweet'), await turn.locator('.mask').count()]).toEqual([
    'a birthday cake on pink',
    0,
  ]);
});

it('announces a text to screen readers once, when it is complete', async () => {
  const { test, page } = await openSlow();
  await send(page, 'something sweet');
  // Records what a screen reader announces: visible changes in the live region.
  await page.evaluate(`{
    window.announced = [];
    const region = document.querySelector('#turns [aria-live=polite]');
    const record = (node) => {
      const element = node instanceof Text ? node.parentElement : node;
      if (!element.closest('[aria-hidden=true]')) announced.push([element.textContent, region.ariaBusy]);
    };
    new MutationObserver((records) => {
      for (const { target, addedNodes, type } of records)
        type === 'characterData' ? record(target) : addedNodes.forEach(record);
    }).observe(region, { subtree: true, childList: true, characterData: true });
  }`);
  const running = await taken(test);
  for (const [offset, text] of [
    [0, 'a '],
    [2, 'birthday '],
    [11, 'cake'],
  ] as const) {
    await running.entry({ type: 'delta', offset, text });
    await expect.poll(() => words(page, 'something sweet')).toContain(text);
  }
  expect(await page.evaluate('announced')).toEqual([]);
  await finish(running, 'a birthday cake');
  await expect.poll(() => page.evaluate('announced')).toEqual([['a birthday cake', 'false']]);
});

it('stops with Escape, keeps the partial text, and retries with another seed', async () => {
  const { test, page } = await openSlow();
  const turn = await send(page, 'something sweet');
  const running = await taken(test);
  await running.entry({ type: 'delta', offset: 0, text: 'a birth' });
  await expect.poll(() => words(page, 'something sweet')).toBe('a birth');
  await page.keyboard.press('Escape');
  await turn.getByText('Canceling…').waitFor();
  await running.finish({ state: 'canceled' });
  await turn.getByText(/^Stopped · /).waitFor();
  await page
    .locator('#announcements')
    .getByText(/^Stopped · .*: something sweet$/)
    .waitFor();
  expect(await words(page, 'something sweet')).toBe('a birth');
  const posted = page.waitForRequest((request) => request.method() === 'POST');
  await turn.getByRole('button', { name: 'Try again' }).click();
  const body = (await posted).postDataJSON() as { seed: number; temperature: number };
  await writeAll(await taken(test), 'a red cake');
  await turn.getByText(`seed ${body.seed}`).waitFor();
  expect([await words(page, 'something sweet'), body.temperature]).toEqual(['a red cake', 0.8]);
});

it('cancels a request that was stopped before the server returned its id', async () => {
  const { test, page } = await openSlow();
  const { held, release } = holdPosts(page);
  const turn = await send(page, 'something sweet');
  await held;
  await turn.getByRole('button', { name: 'Stop' }).click();
  await turn.getByText(/^Stopped · /).waitFor();
  const canceled = page.waitForResponse((response) => response.request().method() === 'DELETE');
  release();
  expect(await (await canceled).json()).toMatchObject({ status: 'canceled' });
  await expect(runNext(test.store, 'emoji-writer')).rejects.toThrow(NothingWaits);
});

it('restores the prompt field when generation is canceled, also before the request has an id', async () => {
  const { test, page } = await openSlow();
  await page.getByRole('link', { name: 'Image', exact: true }).click();
  const prompt = page.getByLabel('Prompt', { exact: true });
  const button = page.getByRole('button', { name: 'Write a prompt' });
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await prompt.fill('something sweet');
  await button.click();
  const run = await taken(test);
  await run.entry({ type: 'snapshot', offset: 0, text: 'a ░', facts: { ids: '5,3,', calls: 1 } });
  await expect.poll(() => prompt.inputValue()).toBe('a ░');
  await run.finish({ state: 'canceled' });
  await page.getByRole('alert').getByText('Canceled', { exact: true }).waitFor();
  expect(await prompt.inputValue()).toBe('something sweet');
  expect(await page.locator('#announcements').textContent()).not.toContain('Written');
  const { held, release } = holdPosts(page);
  await button.click();
  await held;
  await stop.click();
  const canceled = page.waitForResponse((response) => response.request().method() === 'DELETE');
  release();
  expect(await (await canceled).json()).toMatchObject({ status: 'canceled' });
  await button.waitFor();
  expect(await prompt.inputValue()).toBe('something sweet');
});

it('editing a turn sends it and all later turns again', async () => {
  const { test, page } = await openSlow();
  await send(page, 'a dog');
  await writeAll(await taken(test), 'a dog on white');
  await turnOf(page, 'a dog').getByRole('button', { name: 'Develop this' }).waitFor();
  await send(page, 'make it blue');
  await writeAll(await taken(test), 'a dog on blue');
  await turnOf(page, 'make it blue').getByRole('button', { name: 'Develop this' }).waitFor();
  const bodies: { messages: { content: string }[] }[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST') bodies.push(request.postDataJSON() as (typeof bodies)[number]);
  });
  await turnOf(page, 'a dog').getByRole('button', { name: 'Edit this wish' }).click();
  await page.keyboard.type('a cat');
  await page.keyboard.press('Enter');
  const first = await taken(test);
  await first.entry({ type: 'delta', offset: 0, text: 'a cat' });
  await expect.poll(() => words(page, 'a cat')).toBe('a cat');
  await turnOf(page, 'make it blue').getByText('Waiting for the answer before it').waitFor();
  // A reload in between keeps the turns that are still to be sent.
  await page.reload();
  await first.entry({ type: 'delta', offset: 5, text: ' on white' });
  await finish(first, 'a cat on white');
  await writeAll(await taken(test), 'a cat on blue');
  await turnOf(page, 'make it blue').getByRole('button', { name: 'Develop this' }).waitFor();
  expect(bodies.map(({ messages }) => messages.map(({ content }) => content))).toEqual([
    ['a cat'],
    ['a cat', 'a cat on white', 'make it blue'],
  ]);
  expect(await page.locator('#turns article').count()).toBe(2);
  expect(await words(page, 'make it blue')).toBe('a cat on blue');
});

it('does not send later turns after an answer that was stopped', async () => {
  const { test, page } = await openSlow();
  for (const message of ['a dog', 'make it blue']) {
    await send(page, message);
    await writeAll(await taken(test), message);
    await turnOf(page, message).getByRole('button', { name: 'Develop this' }).waitFor();
  }
  await turnOf(page, 'a dog').getByRole('button', { name: 'Try again' }).click();
  const running = await taken(test);
  await turnOf(page, 'a dog').getByRole('button', { name: 'Stop' }).click();
  await running.finish({ state: 'canceled' });
  await turnOf(page, 'make it blue').getByText('Not sent: the answer before it did not succeed').waitFor();
  await send(page, 'a cat');
  await writeAll(await taken(test), 'a cat on white');
  await turnOf(page, 'a cat').getByRole('button', { name: 'Develop this' }).waitFor();
  expect(await words(page, 'a cat')).toBe('a cat on white');
});

it('works with the keyboard alone', async () => {
  const { test, page } = await openSlow();
  await page.getByRole('radio').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('a dog');
  await page.keyboard.press('Shift+Enter');
  await page.keyboard.type('asleep');
  await page.keyboard.press('Enter');
  await writeAll(await taken(test), 'a dog on white');
  const turn = turnOf(page, 'a dog asleep');
  await turn.getByRole('button', { name: 'Develop this' }).waitFor();
  // The field still has the focus. When it is empty, ArrowUp edits the last turn and Escape leaves the editor.
  await page.keyboard.press('ArrowUp');
  const editor = page.getByLabel('Edit the wish; later wishes are sent again');
  expect(await editor.inputValue()).toBe('a dog\nasleep');
  await page.keyboard.press('Escape');
  expect(await editor.isVisible()).toBe(false);
  await page.keyboard.press('Tab');
  await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Develop this');
});

it.each(['dark', 'light'] as const)('fits a phone screen, %s', async (colorScheme) => {
  const { test, page } = await openSlow({ width: 390, height: 780, colorScheme });
  await send(page, 'something sweet for a birthday party with very many guests');
  const running = await taken(test);
  await running.entry({ type: 'delta', offset: 0, text: `a ${'verylong'.repeat(20)} cake` });
  await expect.poll(() => page.locator('#turns [data-part=answer]').textContent()).toContain('cake');
  const width = await page.evaluate('[document.documentElement.scrollWidth, innerWidth]');
  expect(width).toEqual([390, 390]);
  // Field and button are at the bottom of the screen, the text is above them.
  const [field, stop, answer] = await Promise.all(
    [page.locator('#wish'), page.locator('#stop'), page.locator('#turns [data-part=answer]')].map((part) =>
      part.boundingBox(),
    ),
  );
  expect(field!.y + field!.height).toBeLessThanOrEqual(780);
  expect(stop!.height).toBeGreaterThanOrEqual(40);
  expect(answer!.y + answer!.height).toBeLessThanOrEqual(field!.y);
  const light = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  expect(light).toBe(colorScheme === 'dark' ? 'rgb(17, 14, 13)' : 'rgb(244, 241, 236)');
});

it('says that there is no text model', async () => {
  const { url } = await listen(await openTestApi());
  const page = await openWrite(browser(), url);
  await page.getByText('No worker has loaded a text model yet').waitFor();
  await page.getByLabel('What do you wish for?').fill('a dog');
  await page.keyboard.press('Enter');
  expect(await page.locator('#turns article').count()).toBe(0);
  await page.getByRole('link', { name: 'Image', exact: true }).click();
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  expect(await page.getByRole('button', { name: 'Write a prompt' }).count()).toBe(0);
});
