/** The first hour with the page, by keyboard alone. */
import type { Page } from 'playwright-core';
import { expect, it } from 'vitest';
import { downloadedBytes, openPage, useChromium } from './chromium.ts';
import { cardOf, developed } from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';

const system = useSharedSystem();
const browser = useChromium();
const wish = 'something sweet for a birthday party';

/** Presses Tab until the element with this label or text has the focus. */
async function tabTo(page: Page, name: RegExp): Promise<void> {
  const reached: string[] = [];
  for (let count = 0; count < 120; count++) {
    await page.keyboard.press('Tab');
    const label = await page.evaluate<string>(
      'document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()',
    );
    if (name.test(label)) return;
    reached.push(label.slice(0, 40));
  }
  throw new Error(`Tab does not reach ${name}, but ${reached.join(' | ')}`);
}

async function press(page: Page, name: RegExp): Promise<void> {
  await tabTo(page, name);
  await page.keyboard.press('Enter');
}

it('draws, starts from the image, upscales, writes, downloads and reloads by keyboard alone', async () => {
  const page = await openPage(browser(), system.url, { isMoreOpen: false });
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  const prompt = page.getByLabel('Prompt', { exact: true });
  const focused = page.locator(':focus');

  // Draw an example.
  await page.getByRole('button', { name: 'a rocket on a black background' }).waitFor();
  await press(page, /^a rocket on a black background$/);
  await developed(cardOf(page, 'a rocket on a black background'));

  // Start from it.
  await press(page, /^Open the image$/);
  await press(page, /^Start from this$/);
  await prompt.and(focused).waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('a whale on a black background');
  await page.keyboard.press('Control+Enter');
  const whale = cardOf(page, 'a whale on a black background');
  await developed(whale);

  // Upscale it.
  await press(page, /^Open the image$/);
  await press(page, /^Upscale 2×$/);
  await whale.first().and(focused).waitFor();
  await developed(whale.first());
  expect(await whale.count()).toBe(2);

  // Let the writer write the prompt.
  await page.keyboard.press('/');
  await page.keyboard.press('Control+A');
  await page.keyboard.type(wish);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await expect.poll(() => prompt.inputValue()).toMatch(/background$/);

  // Wish, prompt, image, download.
  await press(page, /^Write$/);
  // The view follows the address a moment later.
  await page.getByLabel('What do you wish for?').waitFor();
  await page.getByRole('radio').first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type(wish);
  await page.keyboard.press('Enter');
  const turn = page.locator('#turns').getByRole('article', { name: wish });
  await turn.getByRole('button', { name: 'Develop this' }).waitFor();
  const written = await turn.locator('[data-part=answer]').innerText();
  await press(page, /^Develop this$/);
  await turn.getByText(/^Developed in/).waitFor();
  await tabTo(page, /^Download/);
  const downloading = page.waitForEvent('download');
  await page.keyboard.press('Enter');
  expect((await downloadedBytes(downloading)).subarray(1, 4).toString()).toBe('PNG');

  // Everything is still there after a reload.
  await page.reload();
  await turn.getByRole('link', { name: /^Download/ }).waitFor();
  await press(page, /^Image$/);
  await expect.poll(() => page.getByRole('article').locator('img.final').count()).toBe(4);
  await developed(cardOf(page, written));
});
