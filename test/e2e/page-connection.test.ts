/** The page's connection to the server: late workers, a proxy with a prefix, several tabs, lost events. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, request as httpRequest } from 'node:http';
import type { ImageCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import type { Page } from 'playwright-core';
import { imageCard } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { useChromium, openPage, type OpenPageOptions, pageTimeoutMs } from './chromium.ts';
import {
  submitPrompt,
  cardOf,
  developed,
  downloadedFrom,
  requestedPositions,
  stepAt,
  stepOf,
  storedImage,
} from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';
import { openSystem } from './system.ts';

const system = useSharedSystem();
const browser = useChromium();
const waitOptions = { timeout: pageTimeoutMs };

const open = (options?: OpenPageOptions, url = system.url): Promise<Page> => openPage(browser(), url, options);

it('closes its event stream while the tab is hidden, and resumes at the same event', async () => {
  const page = await open();
  const positions = requestedPositions(page);
  const hide = (isHidden: boolean): Promise<void> =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  const card = await submitPrompt(page, 'a guitar', 120, 2);
  await expect.poll(() => stepOf(card), waitOptions).toBeGreaterThan(10);
  const seen = await stepOf(card);
  const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
  await hide(true);
  await closed;
  await hide(false);
  await developed(card);
  expect(positions).toHaveLength(2);
  expect(positions[0]).toBe(0);
  expect(await stepAt(page, system.url, positions[1]!)).toBeGreaterThanOrEqual(seen);
});

it('assembles images from their chunks without fetching them', async () => {
  const page = await open();
  const fetched = imagesFetched(page);
  await splitImages(page);
  // Long enough that the page connects before the request ends: otherwise no chunks are sent.
  const card = await submitPrompt(page, 'a star', 120);
  expect(await downloadedFrom(card)).toEqual(await storedImage(page, system.url));
  expect(fetched).toEqual([]);
});

it.each([0, 1, -1])('detects that chunk %d of several is missing, and fetches the image once', async (chunk) => {
  const page = await open();
  const fetched = imagesFetched(page);
  await splitImages(page, chunk);
  const card = await submitPrompt(page, 'a penguin', 120);
  expect(await downloadedFrom(card)).toEqual(await storedImage(page, system.url));
  expect(fetched).toHaveLength(1);
});

/** Splits images into three chunks, as the API does those of more than 400 KB, and drops the chunk `lost`. */
async function splitImages(page: Page, lost?: number): Promise<void> {
  await page.route('**/events', async (route) => {
    const response = await route.fetch();
    const frames = (await response.text()).split('\n\n').flatMap((frame) => {
      const [, sequence, data] = /^id: (\d+)-0\nevent: image\ndata: (.*)$/.exec(frame) ?? [];
      if (data === undefined) return [frame];
      const { b64, ...image } = JSON.parse(data) as { b64: string };
      const bytes = Buffer.from(b64, 'base64');
      const size = 3 * Math.ceil(bytes.length / 9);
      const chunks = [0, 1, 2].map((at) => {
        const part = bytes.subarray(at * size, (at + 1) * size).toString('base64');
        const chunk = { ...image, chunk_index: at, total_chunks: 3, is_chunked: true, is_final: at === 2, b64: part };
        return `id: ${sequence}-${at}\nevent: image\ndata: ${JSON.stringify(chunk)}`;
      });
      return chunks.filter((each) => lost === undefined || each !== chunks.at(lost));
    });
    await route.fulfill({ response, body: frames.join('\n\n') });
  });
}

function imagesFetched(page: Page): string[] {
  const fetched: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/images/')) fetched.push(request.url());
  });
  return fetched;
}

it('shows in every tab the requests that were submitted or removed in one tab', async () => {
  const page = await open();
  const other = await page.context().newPage();
  await other.goto(system.url);
  await developed(await submitPrompt(page, 'a tree', 4));
  await developed(cardOf(other, 'a tree'));
  await page.getByRole('button', { name: 'Remove' }).click();
  await expect.poll(() => other.getByRole('article').count(), waitOptions).toBe(0);
});

it('works behind a proxy that serves it under a path prefix', async () => {
  const page = await open({}, await startPrefixProxy());
  expect(new URL(page.url()).pathname).toBe('/lab/client.html');
  await developed(await submitPrompt(page, 'a moon', 3));
  await page.reload();
  await developed(cardOf(page, 'a moon'));
  await page.getByRole('link', { name: 'API reference' }).click();
  await page.waitForURL('**/lab/docs');
});

/** Forwards `/lab/…` as `/…`; anything else is a 404. */
async function startPrefixProxy(): Promise<string> {
  const proxy = createServer((request, response) => {
    const { url = '', method = 'GET', headers } = request;
    if (!url.startsWith('/lab/')) return void response.writeHead(404).end();
    request.pipe(
      httpRequest(`${system.url}${url.slice('/lab'.length)}`, { method, headers }, (answer) => {
        answer.pipe(response.writeHead(answer.statusCode!, answer.headers));
      }),
    );
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/lab`;
}

it('says that no worker has published a model, and shows the limits of the first published model', async () => {
  const fresh = await openSystem({ parts: ['api'] });
  const page = await open({}, fresh.url);
  await page.getByText('no worker has registered a model yet').waitFor();
  await page.getByLabel('Prompt', { exact: true }).fill('a cat');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page
    .getByRole('alert')
    .getByText(/^No worker has published a model yet.* Try again in \d+ s\.$/)
    .waitFor();
  const card: ImageCard = {
    ...imageCard,
    sizes: { multiple: 32, min: 32, max: 320, default: { width: 96, height: 96 } },
    steps: { min: 2, max: 90, default: 12 },
  };
  await publishModel(fresh.store, card);
  await page.getByText('no worker serves it now; prompts of up to 77 tokens').waitFor();
  await page.getByText('32 to 320 pixels a side, in steps of 32').waitFor();
  await page.getByText('2 to 90', { exact: true }).waitFor();
  expect(await page.getByLabel('Width').inputValue()).toBe('96');
});

it('says that the server does not know a request', async () => {
  const page = await open();
  const entry = { id: 'emoji-sd-00000000000000000000000000', createdAtMs: 1, request: { prompt: 'a ghost' } };
  await page.evaluate(`localStorage.setItem('darkroom.gallery', '${JSON.stringify([entry])}')`);
  await page.reload();
  await cardOf(page, 'a ghost').getByText('The server does not know this request').waitFor();
  expect(await page.getByRole('button', { name: 'Cancel' }).count()).toBe(0);
});

it('shows the curl command for manual copying when the clipboard is not available', async () => {
  const page = await open();
  await page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error('no'))`);
  const card = await submitPrompt(page, 'pizza', 2);
  await card.getByRole('button', { name: 'Copy as curl' }).click();
  expect(await page.getByRole('textbox', { name: 'Copy this line' }).inputValue()).toMatch(/^curl -s 'http.*"pizza"/);
});
