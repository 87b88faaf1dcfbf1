/** A result as a starting point: the large view of an image, its keys and actions; examples in an empty tray. */
import { imageCard } from '@darkroom/testing';
import { publishModel } from '@darkroom/store';
import sharp from 'sharp';
import type { Locator, Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { axeFindings } from './axe.ts';
import { downloadedBytes, openPage, type OpenPageOptions, useChromium } from './chromium.ts';
import { cardOf, developed, submitPrompt } from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';
import { openSystem } from './system.ts';

const system = useSharedSystem();
const browser = useChromium();
const fox = 'a fox on a green background';

const open = (options?: OpenPageOptions): Promise<Page> => openPage(browser(), system.url, options);
const viewerOf = (page: Page): Locator => page.locator('#viewer');
const button = (page: Page, name: string): Locator => viewerOf(page).getByRole('button', { name, exact: true });
const title = (page: Page): Promise<string | null> => viewerOf(page).getByRole('heading').textContent();
const position = (page: Page): Promise<string> => viewerOf(page).locator('[data-part=position]').innerText();

/** Draws one image and opens it in the viewer. */
async function openFox(page: Page, steps = 6): Promise<void> {
  const card = await submitPrompt(page, fox, steps);
  await developed(card);
  await card.getByRole('button', { name: 'Open the image' }).click();
  await viewerOf(page).waitFor();
}

async function newest(page: Page): Promise<{ id: string; request: Record<string, unknown> }> {
  const text = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
  return (JSON.parse(text) as [{ id: string; request: Record<string, unknown> }])[0];
}

async function imageOf(id: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(`${system.url}/v1/predict/${id}/images/0`)).arrayBuffer());
}

const pixelsOf = (data: Buffer): Promise<Buffer> => sharp(data).raw().toBuffer();

it('opens an image large; arrow keys show the others, Escape closes and returns the focus', async () => {
  const page = await open();
  await developed(await submitPrompt(page, 'a red apple on a white background', 4));
  const card = await submitPrompt(page, fox, 4, 2);
  await expect.poll(() => card.getByRole('button', { name: /^Open image/ }).count()).toBe(2);
  const opener = card.getByRole('button', { name: 'Open image 1 of 2' });
  await opener.focus();
  await page.keyboard.press('Enter');
  expect([await title(page), await position(page)]).toEqual([fox, '1 of 3']);
  const image = (await viewerOf(page).getByRole('img', { name: fox }).boundingBox())!;
  expect(image.width).toBeGreaterThan(600);
  await page.keyboard.press('ArrowLeft');
  expect(await position(page)).toBe('1 of 3');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  expect([await title(page), await position(page)]).toEqual(['a red apple on a white background', '3 of 3']);
  await page.keyboard.press('Escape');
  await viewerOf(page).waitFor({ state: 'hidden' });
  await opener.and(page.locator(':focus')).waitFor();
});

it('zooms by keys and by a click, and arrow keys then scroll', async () => {
  const page = await open();
  await openFox(page);
  const image = viewerOf(page).getByRole('img', { name: fox });
  const width = async (): Promise<number> => Math.round((await image.boundingBox())!.width);
  const fitted = await width();
  await page.keyboard.press('+');
  expect(await width()).toBe(2 * fitted);
  const left = async (): Promise<number> => (await image.boundingBox())!.x;
  const before = await left();
  await page.keyboard.press('ArrowRight');
  await expect.poll(left).toBeLessThan(before);
  await page.keyboard.press('-');
  expect(await width()).toBe(fitted);
  await image.click();
  expect(await width()).toBe(2 * fitted);
  await page.keyboard.press('0');
  expect(await width()).toBe(fitted);
});

it('starts from an image, and compares the result with it', async () => {
  const page = await open();
  await openFox(page);
  await button(page, 'Start from this').click();
  const field = page.getByRole('group', { name: 'Start from an image' });
  await field.getByText(/^darkroom-a-fox-on-a-green-background-\d+\.png$/).waitFor();
  await page.getByLabel('Prompt', { exact: true }).and(page.locator(':focus')).waitFor();
  const card = await submitPrompt(page, 'a dog on a green background', 6);
  await developed(card);
  await card.getByRole('button', { name: 'Open the image' }).click();
  await viewerOf(page).getByText('0.8', { exact: true }).or(viewerOf(page).getByText('yes')).first().waitFor();
  const compare = button(page, 'Compare with the input image');
  await compare.click();
  const slider = viewerOf(page).getByRole('slider', { name: 'Before and after of the image' });
  await slider.press('Home');
  expect(await slider.getAttribute('aria-valuetext')).toBe('0 % of the input image');
  expect(await compare.getAttribute('aria-pressed')).toBe('true');
  await compare.click();
  expect(await slider.isVisible()).toBe(false);
});

it('Vary draws four images from it, Upscale the same image larger, Use settings fills in the form', async () => {
  const page = await open();
  await openFox(page);
  const { id, request } = await newest(page);
  await button(page, 'Upscale 2×').click();
  await viewerOf(page).waitFor({ state: 'hidden' });
  await page.locator('article:focus').getByText('upscaled 2×').waitFor();
  await developed(cardOf(page, fox).first());
  const { data, info } = await sharp(await imageOf((await newest(page)).id))
    .resize(128)
    .raw()
    .toBuffer({ resolveWithObject: true });
  expect([info.width, info.height]).toEqual([128, 128]);
  const original = await sharp(await imageOf(id))
    .raw()
    .toBuffer();
  const difference = original.reduce((sum, value, at) => sum + Math.abs(value - data[at]!), 0) / original.length;
  expect(difference).toBeLessThan(6);
  await cardOf(page, fox).last().getByRole('button', { name: 'Open the image' }).click();
  await button(page, 'Vary').click();
  await viewerOf(page).waitFor({ state: 'hidden' });
  const varied = await newest(page);
  expect(varied.request).toMatchObject({ n: 4, strength: 0.7, image: `/v1/predict/${varied.id}/inputs/image` });
  await expect.poll(() => cardOf(page, fox).first().locator('img.final').count()).toBe(4);
  await cardOf(page, fox).first().getByRole('button', { name: 'Open image 3 of 4' }).click();
  await button(page, 'Use settings').click();
  expect(await page.getByLabel('Seed', { exact: true }).inputValue()).toBe(
    String((Number(varied.request['seed']) + 2) % 2 ** 32),
  );
  expect(await page.getByLabel('Images', { exact: true }).inputValue()).toBe('1');
  expect(await page.getByLabel('Prompt', { exact: true }).inputValue()).toBe(request['prompt']);
});

it('copies a link to the file, downloads it, and tells what is on it', async () => {
  const page = await open();
  await openFox(page, 20);
  const bytes = await imageOf((await newest(page)).id);
  await button(page, 'Copy link').click();
  await expect.poll(() => page.locator('#viewer').textContent()).toContain('The link is in the clipboard.');
  const link = await page.evaluate<string>('navigator.clipboard.readText()');
  expect(Buffer.from(await (await fetch(link)).arrayBuffer())).toEqual(bytes);
  const downloading = page.waitForEvent('download');
  await viewerOf(page).getByRole('link', { name: 'Download' }).click();
  expect((await downloading).suggestedFilename()).toMatch(/^darkroom-a-fox.*\.png$/);
  expect(await downloadedBytes(downloading)).toEqual(bytes);
  await button(page, 'What is this?').click();
  await viewerOf(page)
    .getByText(/^an? .*fox/)
    .waitFor();
});

it.each([
  { width: 1280, height: 900, colorScheme: 'dark' as const },
  { width: 390, height: 844, colorScheme: 'light' as const },
])('has no axe findings with examples, a card and the viewer: $width × $height', async (options) => {
  const page = await open(options);
  await page.getByRole('button', { name: fox }).waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await openFox(page);
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  expect(await axeFindings(page)).toEqual([]);
  expect(await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBe(0);
});

it('an empty tray offers six examples of the model, and a click draws one like its thumbnail', async () => {
  const page = await open();
  const examples = page.getByRole('list', { name: 'Draw one of these' });
  await examples.getByRole('button', { name: fox }).waitFor();
  expect(await examples.getByRole('button').count()).toBe(6);
  const thumbnail = await examples.getByRole('button', { name: fox }).locator('img').getAttribute('src');
  await examples.getByRole('button', { name: fox }).click();
  await developed(cardOf(page, fox));
  expect(await examples.isVisible()).toBe(false);
  const [drawn, shown] = [
    await pixelsOf(await imageOf((await newest(page)).id)),
    await pixelsOf(Buffer.from(thumbnail!.slice(thumbnail!.indexOf(',') + 1), 'base64')),
  ];
  const difference = drawn.reduce((sum, value, at) => sum + Math.abs(value - shown[at]!), 0) / drawn.length;
  expect(difference).toBeLessThan(6);
});

it('a model without examples offers none', async () => {
  const bare = await openSystem({ parts: ['api'] });
  await publishModel(bare.store, imageCard);
  const page = await openPage(browser(), bare.url);
  await page.getByText('prompts of up to 77 tokens').waitFor();
  await page.getByText('Nothing in the tray yet.').waitFor();
  expect(await page.getByText('Draw one of these').isVisible()).toBe(false);
});
