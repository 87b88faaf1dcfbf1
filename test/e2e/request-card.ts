/** The page's card of a request, and what asks for one. */
import type { Locator, Page } from 'playwright-core';
import { downloadedBytes } from './chromium.ts';
import { stream } from './client.ts';

export async function ask(page: Page, prompt: string, steps: number, pictures = 1): Promise<Locator> {
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  await page.getByLabel('Pictures', { exact: true }).fill(String(pictures));
  await page.getByLabel('Prompt', { exact: true }).fill(prompt);
  await page.getByLabel('Steps', { exact: true }).fill(String(steps));
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = cardOf(page, prompt);
  await card.waitFor();
  return card;
}

export function cardOf(page: Page, prompt: string): Locator {
  return page.getByRole('article', { name: prompt, exact: true });
}

/** The whole picture, not a preview. */
export function developed(card: Locator): Promise<void> {
  return card
    .getByRole('link', { name: /^Download/ })
    .first()
    .waitFor();
}

export async function stepOf(card: Locator): Promise<number> {
  const words = await card.getByText(/^Step \d+ of \d+$/).textContent();
  return Number(/\d+/.exec(words!)![0]);
}

/** The positions from which the page asks for events, as it asks; 0 is the first. */
export function positionsAsked(page: Page): number[] {
  const positions: number[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/events'))
      positions.push(Number.parseInt(request.headers()['last-event-id'] ?? '0', 10));
  });
  return positions;
}

export async function downloadedFrom(card: Locator): Promise<Buffer> {
  const downloading = card.page().waitForEvent('download');
  await card
    .getByRole('link', { name: /^Download/ })
    .first()
    .click();
  return downloadedBytes(downloading);
}

/** The newest of the page's gallery, as the server at `url` has it. */
export async function storedPicture(page: Page, url: string): Promise<Buffer> {
  const response = await fetch(`${url}/v1/predict/${await newestOf(page)}/images/0`);
  return Buffer.from(await response.arrayBuffer());
}

/** The steps of all its pictures that the events of the newest of the page's gallery tell of, up to a position. */
export async function stepAt(page: Page, url: string, position: number): Promise<number> {
  const events = await stream(url, await newestOf(page));
  const steps = new Map<number, number>();
  for (const { id, event, data } of events) {
    if (event !== 'progress' || Number.parseInt(id!, 10) > position) continue;
    const { index, step } = JSON.parse(data) as { index: number; step: number };
    steps.set(index, step);
  }
  return [...steps.values()].reduce((sum, step) => sum + step, 0);
}

async function newestOf(page: Page): Promise<string> {
  const text = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
  const [newest] = JSON.parse(text) as { id: string }[];
  return newest!.id;
}
