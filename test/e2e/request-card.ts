/** Fills in and submits the page's form. Returns the request's card. */
import type { Locator, Page } from 'playwright-core';
import { downloadedBytes } from './chromium.ts';
import { stream } from './client.ts';

export async function submitPrompt(page: Page, prompt: string, steps: number, images = 1): Promise<Locator> {
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  await page.getByLabel('Images', { exact: true }).fill(String(images));
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

/** Waits for the final image, not a preview. */
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

/** Collects the event positions (Last-Event-ID) from which the page requests streams; 0 is the first. */
export function requestedPositions(page: Page): number[] {
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

/** Returns the stored image of the newest request in the page's gallery. */
export async function storedImage(page: Page, url: string): Promise<Buffer> {
  const response = await fetch(`${url}/v1/predict/${await newestOf(page)}/images/0`);
  return Buffer.from(await response.arrayBuffer());
}

/** Returns the sum of the steps of all images of the newest request, from its events up to a position. */
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
