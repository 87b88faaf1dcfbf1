/** The form of the page: what stays visible, errors beside their fields, "More", and the search of styles. */
import type { ImageCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import type { Locator, Page } from 'playwright-core';
import { imageCard } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { axeFindings } from './axe.ts';
import { useChromium, openPage, type OpenPageOptions } from './chromium.ts';
import { openSystem } from './system.ts';

const browser = useChromium();
const sizes = [
  { width: 1280, height: 900 },
  { width: 1920, height: 1080 },
  { width: 390, height: 844 },
];

const loras = Array.from({ length: 42 }, (_, at) => ({ id: `style-${at + 1}`, rank: 4 }));
const styled: ImageCard = { ...imageCard, takes: ['image', 'mask'], loras, upscales: [2, 4] };

/** Opens the page on an API without workers, whose model has 42 styles. */
async function open(options: OpenPageOptions = {}): Promise<Page> {
  const system = await openSystem({ parts: ['api'] });
  await publishModel(system.store, styled);
  const page = await openPage(browser(), system.url, options);
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  return page;
}

/** Returns true if the element is inside the window, and no other element covers its center. */
function isInSight(page: Page, selector: string): Promise<boolean> {
  return page.evaluate<boolean>(`{
    const element = document.querySelector('${selector}');
    const { left, top, right, bottom } = element.getBoundingClientRect();
    const isInside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    isInside && element.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  }`);
}

const develop = (page: Page): Locator => page.getByRole('button', { name: 'Develop' });
const prompt = (page: Page): Locator => page.getByLabel('Prompt', { exact: true });

it.each(sizes)('keeps prompt, model and Develop visible with 42 styles at $width × $height', async (size) => {
  const page = await open(size);
  // Cards make the page longer than the window.
  for (const name of ['a cat', 'a dog', 'a fox', 'a cow']) {
    await prompt(page).fill(name);
    await develop(page).click();
    await page.getByRole('article', { name }).waitFor();
  }
  for (const top of [0, 100_000]) {
    await page.evaluate(`scrollTo(0, ${top})`);
    for (const selector of ['#prompt', '#model', 'button.develop'])
      expect([selector, await isInSight(page, selector)]).toEqual([selector, true]);
  }
  expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBe(0);
});

it.each(sizes)('shows an error beside its field at $width × $height, even in a closed section', async (size) => {
  const page = await open({ ...size, isMoreOpen: false });
  await prompt(page).fill('a cat');
  const steps = page.getByLabel('Steps', { exact: true });
  expect(await steps.isVisible()).toBe(false);
  await page.getByText('More', { exact: false }).click();
  await steps.fill('999');
  await page.getByText('More', { exact: false }).click();
  await develop(page).click();
  const alert = page.getByRole('alert');
  await alert.waitFor();
  expect(await alert.textContent()).toMatch(/^Steps is 999, expected .* 1 to /);
  for (const selector of ['#num_inference_steps', '[role=alert]'])
    await expect.poll(() => isInSight(page, selector)).toBe(true);
  const [field, message] = [await steps.boundingBox(), await alert.boundingBox()];
  expect(message!.y - (field!.y + field!.height)).toBeGreaterThanOrEqual(0);
  expect(message!.y - (field!.y + field!.height)).toBeLessThan(24);
  expect(await page.evaluate<string>('document.activeElement.name')).toBe('num_inference_steps');
  expect(await steps.getAttribute('aria-errormessage')).toBe(await alert.getAttribute('id'));
});

it('remembers that "More" is open', async () => {
  const page = await open({ isMoreOpen: false });
  const more = page.getByText('More', { exact: false });
  const stored = () => page.evaluate(`localStorage.getItem('darkroom.more')`);
  await more.click();
  await expect.poll(stored).toBe('open');
  await page.reload();
  expect(await page.getByLabel('Guidance', { exact: true }).isVisible()).toBe(true);
  await more.click();
  await expect.poll(stored).toBe(null);
  await page.reload();
  expect(await page.getByLabel('Guidance', { exact: true }).isVisible()).toBe(false);
});

it('searches more than eight styles by name, and keeps chosen ones visible', async () => {
  const page = await open();
  const styles = page.getByRole('group', { name: 'Styles' });
  const shown = () => styles.getByRole('checkbox').count();
  expect(await shown()).toBe(42);
  await page.getByLabel('style-7', { exact: true }).check();
  const search = page.getByRole('searchbox', { name: 'Search styles' });
  await search.fill('STYLE-4');
  // 4, 40, 41, 42, and the chosen 7.
  expect(await shown()).toBe(5);
  await search.fill('no such style');
  expect(await shown()).toBe(1);
  await page.getByLabel('style-7', { exact: true }).uncheck();
  await search.press('Enter');
  await search.fill('nothing');
  await page.getByText('No style has this name.').waitFor();
  expect(await page.getByRole('alert').count()).toBe(0);
});

it.each([
  ...sizes.map((size) => ({ ...size, colorScheme: 'dark' as const })),
  { ...sizes[0]!, colorScheme: 'light' as const },
])('has no axe findings in the form with all fields: $width × $height, $colorScheme', async (options) => {
  const page = await open(options);
  await page.getByLabel('style-7', { exact: true }).check();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByLabel('Width').fill('1');
  await prompt(page).fill('a cat');
  await develop(page).click();
  await page.getByRole('alert').waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.getByRole('link', { name: 'Write' }).click();
  expect(await axeFindings(page)).toEqual([]);
});
