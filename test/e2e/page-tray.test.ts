/** The tray: search, layout, how long images are kept, requests from elsewhere; drafts in the form. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { axeFindings } from './axe.ts';
import { downloadedBytes, openPage, type OpenPageOptions, useChromium } from './chromium.ts';
import { postJson } from './client.ts';
import { cardOf, developed, submitPrompt } from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
const browser = useChromium();

const open = (options?: OpenPageOptions): Promise<Page> => openPage(browser(), system.url, options);

it('shows until when images are kept, also after a reload', async () => {
  const page = await open();
  await developed(await submitPrompt(page, 'a cat', 4));
  const kept = cardOf(page, 'a cat').getByText(/^Kept until .*\d\d:\d\d/);
  await kept.waitFor();
  const words = await kept.innerText();
  await page.reload();
  await expect.poll(() => kept.innerText()).toBe(words);
});

it('searches by prompt', async () => {
  const page = await open();
  for (const prompt of ['a red apple', 'a green apple', 'a fox']) await developed(await submitPrompt(page, prompt, 4));
  const search = page.getByRole('searchbox', { name: 'Search your images' });
  await search.fill('APPLE');
  expect(await page.getByRole('article').count()).toBe(2);
  await developed(await submitPrompt(page, 'a third apple', 4));
  await search.fill('fox');
  expect(await page.getByRole('article').allInnerTexts()).toHaveLength(1);
  await search.fill('');
  expect(await page.getByRole('article').count()).toBe(4);
});

it('shows a grid of smaller cards, remembers it, and has no axe findings', async () => {
  const page = await open();
  await developed(await submitPrompt(page, 'a cat', 4));
  const width = async (): Promise<number> => (await cardOf(page, 'a cat').boundingBox())!.width;
  const large = await width();
  await page.getByRole('radio', { name: 'Grid' }).check();
  expect(await width()).toBeLessThan(large / 1.5);
  expect(await cardOf(page, 'a cat').getByRole('button', { name: 'Use settings' }).isVisible()).toBe(false);
  expect(await axeFindings(page)).toEqual([]);
  await page.reload();
  expect(await page.getByRole('radio', { name: 'Grid' }).isChecked()).toBe(true);
  await developed(cardOf(page, 'a cat'));
  expect(await width()).toBeLessThan(large / 1.5);
});

it('shows canceled requests small', async () => {
  const page = await open();
  const card = await submitPrompt(page, 'a slow cat', 200, 4);
  const height = async (): Promise<number> => (await card.boundingBox())!.height;
  const before = await height();
  await card.getByRole('button', { name: 'Cancel' }).click();
  await card.getByText('Canceled').waitFor();
  expect(await height()).toBeLessThan(before / 2);
});

it('shows requests that were sent from elsewhere, by time, and none twice', async () => {
  const page = await open();
  await developed(await submitPrompt(page, 'a first cat', 4));
  const body = { model: 'emoji-sd', prompt: 'a dog from elsewhere', seed: 5, n: 2, num_inference_steps: 4 };
  await postJson(`${system.url}/v1/predict`, body, { prefer: 'wait=60' });
  await developed(await submitPrompt(page, 'a last cat', 4));
  await page.getByRole('button', { name: 'Show requests from elsewhere' }).click();
  await page.getByText(/requests? (?:was|were) added\.$/).waitFor();
  const card = cardOf(page, 'a dog from elsewhere').first();
  await card.getByText(/2 images, seeds from 5/).waitFor();
  await expect.poll(() => card.locator('img.final').count()).toBe(2);
  const names = await page.getByRole('article').locator('h3').allInnerTexts();
  expect(names.slice(0, 3)).toEqual(['a last cat', 'a dog from elsewhere', 'a first cat']);
  await page.getByRole('button', { name: 'Show requests from elsewhere' }).click();
  await page.getByText('There are no others.').waitFor();
});

it('pins a request, which is then kept for longer, and takes it back', async () => {
  const page = await open();
  const card = await submitPrompt(page, 'a cat', 4);
  await developed(card);
  const kept = card.getByText(/^Kept until/);
  await kept.waitFor();
  const before = await kept.innerText();
  await card.getByRole('button', { name: 'Pin', exact: true }).click();
  await card.getByRole('button', { name: 'Unpin' }).waitFor();
  expect(await kept.innerText()).not.toBe(before);
  await page.reload();
  await card.getByRole('button', { name: 'Unpin' }).click();
  await card.getByRole('button', { name: 'Pin', exact: true }).waitFor();
});

it('downloads all images in one ZIP file', async () => {
  const page = await open();
  await developed(await submitPrompt(page, 'a cat', 4));
  const two = await submitPrompt(page, 'a dog', 4, 2);
  await expect.poll(() => two.locator('img.final').count()).toBe(2);
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download all' }).click();
  expect((await downloading).suggestedFilename()).toBe('darkroom-images.zip');
  const names = (await downloadedBytes(downloading)).toString('latin1').match(/emoji-sd-\w+-\d\.png/g);
  expect(new Set(names).size).toBe(3);
});

it('keeps the draft of the form after a reload, with styles and choices from lists', async () => {
  const page = await open();
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  const fields = { Prompt: 'a draft', 'Negative prompt': 'blur', Steps: '7', Width: '96', Images: '3', Seed: '11' };
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
  await page.getByLabel('Scheduler').selectOption('euler');
  await page.getByLabel('Upscale').selectOption('2×');
  await page.getByLabel('sunset', { exact: true }).check();
  await page.getByLabel('Scale of sunset').fill('0.5');
  await page.reload();
  await expect.poll(() => page.getByLabel('Scheduler').inputValue()).toBe('euler');
  for (const [label, value] of Object.entries(fields))
    expect([label, await page.getByLabel(label, { exact: true }).inputValue()]).toEqual([label, value]);
  expect(await page.getByLabel('Upscale').inputValue()).toBe('2');
  expect(await page.getByLabel('sunset', { exact: true }).isChecked()).toBe(true);
  expect(await page.getByLabel('Scale of sunset').inputValue()).toBe('0.5');
});
