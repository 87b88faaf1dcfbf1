/** Accessibility of the page: keyboard, screen readers, phones, colour schemes, error messages. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { useChromium, openPage, type OpenPageOptions, pageTimeoutMs } from './chromium.ts';
import { useSharedSystem } from './shared-system.ts';
import { openSystem } from './system.ts';

const system = useSharedSystem();
const browser = useChromium();

const open = (options?: OpenPageOptions, url = system.url): Promise<Page> => openPage(browser(), url, options);

async function modelLoaded(page: Page): Promise<void> {
  await expect.poll(() => page.getByLabel('Steps', { exact: true }).inputValue()).toBe('20');
}

/** Returns the sum of the background's RGB values: 0 is black, 765 white. */
async function brightness(page: Page): Promise<number> {
  const color = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  const [red = 0, green = 0, blue = 0] = color.match(/[\d.]+/g)!.map(Number);
  return red + green + blue;
}

it('works with the keyboard alone: prompt, fields, submit, cancel', async () => {
  const page = await open();
  await modelLoaded(page);
  await page.keyboard.press('/');
  await page.keyboard.type('a red apple on a white background');
  const visited: string[] = [];
  for (let count = 0; count < 7; count++) {
    await page.keyboard.press('Tab');
    visited.push(await page.evaluate<string>('document.activeElement.name || document.activeElement.textContent'));
  }
  expect(visited).toEqual(['model', 'Develop', 'width', 'height', 'n', 'seed', 'negative_prompt']);
  await page.getByLabel('Steps', { exact: true }).fill('200');
  await page.getByLabel('Images', { exact: true }).fill('4');
  await page.keyboard.press('Control+Enter');
  const card = page.getByRole('article', { name: 'a red apple' });
  await card.waitFor();
  await card.focus();
  await page.keyboard.press('Escape');
  await expect.poll(() => card.locator('[data-part=status]').textContent()).toBe('Canceled');
});

it('labels every control for screen readers, and announces progress', async () => {
  const page = await open();
  await modelLoaded(page);
  for (const label of [
    'Prompt',
    'Negative prompt',
    'Model',
    'Steps',
    'Guidance',
    'Width',
    'Height',
    'Images',
    'Seed',
    'Scheduler',
  ])
    expect([label, await page.getByLabel(label, { exact: true }).count()]).toEqual([label, 1]);
  const unnamed = await page.evaluate<string[]>(`
    [...document.querySelectorAll('button, a, img:not([alt=""]), input:not([aria-hidden]), select, textarea, progress')]
      .filter((element) => element.checkVisibility())
      .filter((element) => {
        const own = element.ariaLabel ?? element.getAttribute('alt') ?? element.textContent.trim();
        return !own && !element.labels?.length;
      })
      .map((element) => element.outerHTML)
  `);
  expect(unnamed).toEqual([]);
  await page.getByLabel('Prompt', { exact: true }).fill('a cat on a green background');
  await page.getByLabel('Steps', { exact: true }).fill('6');
  await page.getByRole('button', { name: 'Develop' }).click();
  const news = page.getByRole('log');
  await expect
    .poll(() => news.textContent(), { timeout: pageTimeoutMs })
    .toMatch(/Submitted: a cat.*Developed in .* s: a cat/s);
  expect(await page.getByRole('article', { name: 'a cat' }).getByRole('img').last().getAttribute('alt')).toBe(
    'a cat on a green background',
  );
});

it('fits a phone screen without horizontal scrolling, with images on it', async () => {
  const page = await open({ width: 360, height: 740 });
  await modelLoaded(page);
  await page.getByLabel('Prompt', { exact: true }).fill('a very-long-prompt-without-any-break-'.repeat(8));
  await page.getByLabel('Steps', { exact: true }).fill('4');
  await page.getByLabel('Images', { exact: true }).fill('4');
  await page.getByRole('button', { name: 'Develop' }).click();
  await expect.poll(() => page.locator('img.final').count(), { timeout: pageTimeoutMs }).toBe(4);
  const widths = await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]');
  expect(widths).toEqual([360, 360]);
});

it('scrolls a new request into view on a phone', async () => {
  const page = await open({ width: 360, height: 740 });
  await modelLoaded(page);
  await page.getByLabel('Prompt', { exact: true }).fill('a moon');
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = page.getByRole('article', { name: 'a moon' });
  await card.waitFor();
  await expect.poll(async () => (await card.boundingBox())!.y).toBeLessThan(740 / 2);
});

it('fades images in, unless the user prefers reduced motion', async () => {
  const page = await open();
  await modelLoaded(page);
  await page.getByLabel('Prompt', { exact: true }).fill('a star');
  await page.getByLabel('Steps', { exact: true }).fill('4');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.locator('img.final').waitFor();
  const animation = (): Promise<string> =>
    page.evaluate<string>(`getComputedStyle(document.querySelector('img.final')).animationName`);
  expect(await animation()).toBe('develop');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  expect(await animation()).toBe('none');
});

it('follows the colour scheme of the system until the user picks one, which is kept', async () => {
  const dark = await open({ colorScheme: 'dark' });
  expect(await brightness(dark)).toBeLessThan(120);
  const light = await open({ colorScheme: 'light' });
  expect(await brightness(light)).toBeGreaterThan(600);
  await light.getByRole('button', { name: 'Lights off' }).click();
  expect(await brightness(light)).toBeLessThan(120);
  await light.reload();
  expect(await brightness(light)).toBeLessThan(120);
});

it('explains an invalid field and moves the focus to it', async () => {
  const page = await open();
  await modelLoaded(page);
  await page.getByLabel('Prompt', { exact: true }).fill('a cat');
  await page.getByLabel('Width').fill('100');
  await page.getByRole('button', { name: 'Develop' }).click();
  const problem = page.getByRole('alert');
  await expect
    .poll(() => problem.textContent())
    .toMatch(/^Size is "100x128", expected .*multiple of 32 from 64 to 256\.$/);
  expect(await page.evaluate<string>('document.activeElement.name')).toBe('width');
  await page.getByLabel('Width').fill('128');
  await page.getByLabel('Steps', { exact: true }).fill('4');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('article', { name: 'a cat' }).waitFor();
  expect(await problem.count()).toBe(0);
});

it("reports a full queue and keeps the form's content", async () => {
  const full = await openSystem({ parts: ['api'], environment: { QUEUE_MAX_LENGTH: '1' } });
  await full.store.redis.hset(`${full.prefix}:models`, await system.store.redis.hgetall(`${system.prefix}:models`));
  const page = await open({}, full.url);
  await modelLoaded(page);
  const prompt = page.getByLabel('Prompt', { exact: true });
  await prompt.fill('a cat');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page.getByRole('article', { name: 'a cat' }).getByText('no worker serves its model right now').waitFor();
  await page.getByRole('button', { name: 'Develop' }).click();
  await expect.poll(() => page.getByRole('alert').textContent()).toMatch(/overloaded, try again later.*again in 5 s/);
  expect(await prompt.inputValue()).toBe('a cat');
});

it.each([
  [
    'blocks localStorage',
    `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no', 'SecurityError'); } });`,
  ],
  [
    'has a full localStorage',
    `Storage.prototype.setItem = () => { throw new DOMException('no', 'QuotaExceededError'); };`,
  ],
])('makes images in a browser that %s', async (_what, script) => {
  const page = await open({ script });
  await modelLoaded(page);
  // The browser does not remember that it is open.
  if (!(await page.getByLabel('Steps', { exact: true }).isVisible())) await page.getByText('More').click();
  for (const prompt of ['a cat', 'a dog']) {
    await page.getByLabel('Prompt', { exact: true }).fill(prompt);
    await page.getByLabel('Steps', { exact: true }).fill('4');
    await page.getByRole('button', { name: 'Develop' }).click();
    await page.getByRole('article', { name: prompt }).locator('img.final').waitFor();
  }
  expect([await page.getByRole('alert').count(), await page.getByRole('article').count()]).toEqual([0, 2]);
});

it('a hidden tab opens no connections', async () => {
  const seen = await open();
  await modelLoaded(seen);
  // Headless browsers report every tab as visible.
  const unseen = await seen.context().newPage();
  await unseen.addInitScript(`
    window.isHidden = true;
    Object.defineProperty(document, 'hidden', { get: () => window.isHidden });
  `);
  const requestedPaths: string[] = [];
  unseen.on('request', (request) => requestedPaths.push(new URL(request.url()).pathname));
  await unseen.goto(`${system.url}/client.html`);
  await seen.getByLabel('Prompt', { exact: true }).fill('a cat');
  await seen.getByLabel('Steps', { exact: true }).fill('4');
  await seen.getByRole('button', { name: 'Develop' }).click();
  const card = unseen.getByRole('article', { name: 'a cat' });
  await card.waitFor();
  await seen.getByRole('article', { name: 'a cat' }).locator('img.final').waitFor();
  expect(requestedPaths.filter((path) => path.startsWith('/v1/predict'))).toEqual([]);
  await unseen.evaluate(`window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))`);
  await card.locator('img.final').waitFor();
});
