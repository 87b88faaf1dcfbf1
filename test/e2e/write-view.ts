/** The page's Write view, and what asks in it. */
import type { Browser, Locator, Page } from 'playwright-core';
import { openPage, type OpenPageOptions } from './chromium.ts';

export async function openWrite(browser: Browser, url: string, options?: OpenPageOptions): Promise<Page> {
  const page = await openPage(browser, url, options);
  await page.getByRole('link', { name: 'Write' }).click();
  return page;
}

/** Sends a wish with the keyboard, and finds its turn. */
export async function send(page: Page, wish: string): Promise<Locator> {
  await page.getByRole('radio').first().waitFor();
  const field = page.getByLabel('What do you wish for?');
  await field.fill(wish);
  await field.press('Enter');
  const turn = turnOf(page, wish);
  await turn.waitFor();
  return turn;
}

export function turnOf(page: Page, wish: string): Locator {
  return page.locator('#turns').getByRole('article', { name: wish.trim(), exact: true });
}

export function answerOf(turn: Locator): Locator {
  return turn.locator('[data-part=answer]');
}
