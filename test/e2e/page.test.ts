/** The page in a real Chromium against the running system. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Locator, Page, Route } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { useChromium, downloadedBytes, openPage } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
const browser = useChromium();
/** Timeout for an image while other tests run. */
const imageTimeoutMs = 30_000;

const open = (): Promise<Page> => openPage(browser(), system.url, { leave: cancelAll });

/** Cancels by HTTP: the page cannot send requests while it closes. */
async function cancelAll(page: Page): Promise<void> {
  for (const id of await galleryIds(page)) await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' });
}

/** Fills in and submits the form. Returns the request's card. */
async function submitPrompt(page: Page, prompt: string, fields: Record<string, string> = {}): Promise<Locator> {
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  await page.getByLabel('Prompt', { exact: true }).fill(prompt);
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = page.getByRole('article', { name: prompt });
  await card.waitFor();
  return card;
}

function statusOf(card: Locator): Locator {
  return card.locator('[data-part=status]');
}

async function settled(card: Locator, words: RegExp): Promise<void> {
  await expect.poll(() => statusOf(card).textContent(), { timeout: imageTimeoutMs }).toMatch(words);
}

/** Returns the bytes of a finished image from its download link. */
async function shownBytes(card: Locator, index = 0): Promise<string> {
  await card.locator('img.final').nth(index).waitFor({ timeout: imageTimeoutMs });
  const downloading = card.page().waitForEvent('download');
  await card
    .getByRole('link', { name: /^Download/ })
    .nth(index)
    .click();
  return (await downloadedBytes(downloading)).toString('base64');
}

async function storedBytes(page: Page, at = 0, index = 0): Promise<string> {
  const [id] = (await galleryIds(page)).slice(at);
  const response = await fetch(`${system.url}/v1/predict/${id}/images/${index}`);
  return Buffer.from(await response.arrayBuffer()).toString('base64');
}

/** Returns the ids in the gallery, newest first. */
async function galleryIds(page: Page): Promise<string[]> {
  const text = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery') ?? '[]'`);
  return (JSON.parse(text) as { id: string }[]).map(({ id }) => id);
}

async function previewsSeen(card: Locator, count: number): Promise<void> {
  const seen = new Set<string>();
  await expect
    .poll(
      async () => {
        for (const image of await card.locator('img.preview').all()) {
          const source = await image.getAttribute('src', { timeout: 500 }).catch(() => null);
          if (source !== null) seen.add(source);
        }
        return seen.size;
      },
      { timeout: imageTimeoutMs, interval: 20 },
    )
    .toBeGreaterThanOrEqual(count);
}

describe('making images', () => {
  it('shows previews that change, a progress bar of steps, then the final image', async () => {
    const page = await open();
    const card = await submitPrompt(page, 'a red apple on a white background', { Steps: '100' });
    await previewsSeen(card, 3);
    expect(await card.getByRole('progressbar').getAttribute('max')).toBe('100');
    await settled(card, /^Developed in/);
    expect(await shownBytes(card)).toBe(await storedBytes(page));
    expect(await card.getByRole('progressbar').count()).toBe(0);
  });

  it('takes limits and defaults of the model from the server', async () => {
    const page = await open();
    const steps = page.getByLabel('Steps', { exact: true });
    await expect.poll(() => steps.inputValue()).toBe('20');
    expect(await steps.getAttribute('max')).toBe('200');
    expect(await page.getByLabel('Width').getAttribute('step')).toBe('32');
    expect(await page.getByLabel('Scheduler').locator('option').allTextContents()).toContain('euler');
    expect(await page.getByLabel('Model').locator('option').allTextContents()).toEqual(['emoji-sd']);
  });

  it('keeps fields that were filled in before the models were loaded', async () => {
    const page = await open();
    const held: Route[] = [];
    await page.route('**/v1/models', (route) => void held.push(route));
    await page.reload();
    const steps = page.getByLabel('Steps', { exact: true });
    await steps.fill('7');
    await expect.poll(() => held.length).toBe(1);
    await held[0]!.continue();
    await expect.poll(() => page.getByLabel('Width').inputValue()).toBe('128');
    expect(await steps.inputValue()).toBe('7');
  });

  it('runs several requests at once, each with its number of images', async () => {
    const page = await open();
    const one = await submitPrompt(page, 'a cat on a green background', { Steps: '40' });
    const three = await submitPrompt(page, 'a penguin on a blue background', { Steps: '12', Images: '3' });
    await settled(three, /^Developed/);
    await settled(one, /^Developed/);
    const images = [await shownBytes(three, 0), await shownBytes(three, 1), await shownBytes(three, 2)];
    expect(new Set(images).size).toBe(3);
    expect(images[2]).toBe(await storedBytes(page, 0, 2));
  });

  it('shows the queue position and ETA, and cancels queued and running requests', async () => {
    const page = await open();
    const cards: Locator[] = [];
    // More streams than a browser has connections. Two requests fill the batch, so the first one runs for long.
    const long = { Steps: '200', Images: '4' };
    for (let count = 0; count < 8; count++) cards.push(await submitPrompt(page, `a fox number ${count}`, long));
    await settled(cards[7]!, /^(?:Next in the queue|\d+ ahead in the queue), done in about \d+/);
    await settled(cards[0]!, /^Step \d+ of 800$/);
    for (const card of [cards[7]!, cards[0]!]) {
      await card.getByRole('button', { name: 'Cancel' }).click();
      await settled(card, /^Canceled$/);
      expect(await card.getByRole('button', { name: 'Cancel' }).count()).toBe(0);
    }
  });

  it('makes the same image from the same seed', async () => {
    const page = await open();
    const first = await submitPrompt(page, 'a fox on a green background', { Steps: '8' });
    const bytes = await shownBytes(first);
    await first.getByRole('button', { name: 'Use settings' }).click();
    await page.getByRole('button', { name: 'Develop' }).click();
    const cards = page.getByRole('article', { name: 'a fox on a green background' });
    await expect.poll(() => cards.count()).toBe(2);
    expect(await shownBytes(cards.first())).toBe(bytes);
    expect(await shownBytes(cards.last())).toBe(bytes);
  });

  it('names the downloaded file, and copies a curl command that makes the same image', async () => {
    const page = await open();
    const card = await submitPrompt(page, "a dog's nose; $(touch /tmp/no)", { Steps: '8', Seed: '7' });
    const bytes = await shownBytes(card);
    const downloading = page.waitForEvent('download');
    await card.getByRole('link', { name: /^Download/ }).click();
    expect((await downloading).suggestedFilename()).toMatch(/^[\w-]+-7\.png$/);
    expect((await downloadedBytes(downloading)).toString('base64')).toBe(bytes);
    await card.getByRole('button', { name: 'Copy as curl' }).click();
    await card.getByRole('button', { name: 'Copied' }).waitFor();
    const line = await page.evaluate<string>('navigator.clipboard.readText()');
    const { stdout } = await promisify(execFile)('bash', ['-c', line.replace('curl', 'curl -s -H "prefer: wait=60"')]);
    const { request_id: id, parameters } = JSON.parse(stdout) as { request_id: string; parameters: { prompt: string } };
    expect(parameters.prompt).toBe("a dog's nose; $(touch /tmp/no)");
    const again = await fetch(`${system.url}/v1/predict/${id}/images/0`);
    expect(Buffer.from(await again.arrayBuffer()).toString('base64')).toBe(bytes);
  });
});

describe('after a reload', () => {
  it('resumes a running request after a reload, and keeps finished images', async () => {
    const page = await open();
    const done = await submitPrompt(page, 'a red apple on a white background', { Steps: '6' });
    const bytes = await shownBytes(done);
    const running = await submitPrompt(page, 'a cat on a green background', { Steps: '150', Images: '2' });
    await previewsSeen(running, 3);
    await page.reload();
    expect(await shownBytes(page.getByRole('article', { name: 'a red apple' }))).toBe(bytes);
    const again = page.getByRole('article', { name: 'a cat' });
    await previewsSeen(again, 3);
    await settled(again, /^Developed/);
    expect(await shownBytes(again)).toBe(await storedBytes(page));
  });

  it('says that a request has expired', async () => {
    const page = await open();
    const card = await submitPrompt(page, 'a red apple on a white background', { Steps: '4' });
    await settled(card, /^Developed/);
    const [id] = await galleryIds(page);
    await system.store.redis.del(system.store.keysOf('emoji-sd').request(id!));
    await page.reload();
    await settled(page.getByRole('article', { name: 'a red apple' }), /^Expired/);
    expect(await page.locator('img.final').count()).toBe(0);
  });

  it('detects a missing chunk of an image and fetches the image', async () => {
    const page = await open();
    // Drops the image event from the stream, as a broken proxy might.
    await page.route('**/events*', async (route) => {
      const response = await route.fetch();
      const body = (await response.text()).replaceAll(/id: \d+-0\nevent: image\n[^\n]*\n\n/g, '');
      await route.fulfill({ response, body });
    });
    const card = await submitPrompt(page, 'a cat on a green background', { Steps: '4' });
    expect(await shownBytes(card)).toBe(await storedBytes(page));
    await settled(card, /^Developed/);
  });
});
