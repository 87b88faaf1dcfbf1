/** Opens the page's Write view. */
import type { Browser, Locator, Page } from 'playwright-core';
import { openPage, type OpenPageOptions } from './chromium.ts';

export async function openWrite(browser: Browser, url: string, options?: OpenPageOptions): Promise<Page> {
  const page = await openPage(browser, url, options);
  await page.getByRole('link', { name: 'Write' }).click();
  return page;
}

/** Sends a message with the keyboard. Returns its turn. */
export async function send(page: Page, message: string): Promise<Locator> {
  await page.getByRole('radio').first().waitFor();
  const field = page.getByLabel('What do you wish for?');
  await field.fill(message);
  await field.press('Enter');
  const turn = turnOf(page, message);
  await turn.waitFor();
  return turn;
}

export function turnOf(page: Page, message: string): Locator {
  return page.locator('#turns').getByRole('article', { name: message.trim(), exact: true });
}

export function answerOf(turn: Locator): Locator {
  return turn.locator('[data-part=answer]');
}
