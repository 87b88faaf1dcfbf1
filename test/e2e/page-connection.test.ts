/** The page and the way to its server: slow to come up, behind a proxy, shared by tabs, lossy. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, request as httpRequest } from 'node:http';
import type { PictureCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { connectToChromium, openPage, type OpenPageOptions, pagePatienceMs } from './chromium.ts';
import {
  ask,
  cardOf,
  developed,
  downloadedFrom,
  positionsAsked,
  stepAt,
  stepOf,
  storedPicture,
} from './request-card.ts';
import { useSharedSystem } from './shared-system.ts';
import { openSystem } from './system.ts';

const system = useSharedSystem();
let browser: Browser;
const patience = { timeout: pagePatienceMs };

beforeAll(async () => {
  browser = await connectToChromium();
});
afterAll(() => browser.close());

const open = (options?: OpenPageOptions, url = system.url): Promise<Page> => openPage(browser, url, options);

it('gives its stream back while nobody looks, and comes back where it was', async () => {
  const page = await open();
  const positions = positionsAsked(page);
  const hide = (isHidden: boolean): Promise<void> =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  const card = await ask(page, 'a guitar', 120, 2);
  await expect.poll(() => stepOf(card), patience).toBeGreaterThan(10);
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

it('puts pictures together from their chunks, and asks for none twice', async () => {
  const page = await open();
  const fetched = imagesFetched(page);
  // Long enough that the page looks before it has ended: else there is nothing to put together.
  const card = await ask(page, 'a star', 120);
  expect(await downloadedFrom(card)).toEqual(await storedPicture(page, system.url));
  expect(fetched).toEqual([]);
});

it.each([0, 1, -1])('notices that chunk %d of several is missing, and fetches the picture, once', async (chunk) => {
  const page = await open();
  const fetched = imagesFetched(page);
  await page.route('**/events', async (route) => {
    const response = await route.fetch();
    const frames = (await response.text()).split('\n\n');
    const chunks = frames.filter((frame) => frame.includes('"chunk_index":'));
    expect(chunks.length).toBeGreaterThan(2);
    await route.fulfill({ response, body: frames.filter((frame) => frame !== chunks.at(chunk)).join('\n\n') });
  });
  const card = await ask(page, 'a penguin', 120);
  expect(await downloadedFrom(card)).toEqual(await storedPicture(page, system.url));
  expect(fetched).toHaveLength(1);
});

function imagesFetched(page: Page): string[] {
  const fetched: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/images/')) fetched.push(request.url());
  });
  return fetched;
}

it('shows in every tab what was asked for, and removed, in one', async () => {
  const page = await open();
  const other = await page.context().newPage();
  await other.goto(system.url);
  await developed(await ask(page, 'a tree', 4));
  await developed(cardOf(other, 'a tree'));
  await page.getByRole('button', { name: 'Remove' }).click();
  await expect.poll(() => other.getByRole('article').count(), patience).toBe(0);
});

it('works behind a proxy that serves it under a prefix', async () => {
  const page = await open({}, await startPrefixProxy());
  expect(new URL(page.url()).pathname).toBe('/lab/client.html');
  await developed(await ask(page, 'a moon', 3));
  await page.reload();
  await developed(cardOf(page, 'a moon'));
  await page.getByRole('link', { name: 'API reference' }).click();
  await page.waitForURL('**/lab/docs');
});

/** Passes `/lab/…` on as `/…`, and nothing else. */
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

it('says that no worker has brought a model, and shows the limits of the first that comes', async () => {
  const fresh = await openSystem({ parts: ['api'] });
  const page = await open({}, fresh.url);
  await page.getByText('no worker has brought one yet').waitFor();
  await page.getByLabel('Prompt', { exact: true }).fill('a cat');
  await page.getByRole('button', { name: 'Develop' }).click();
  await page
    .getByRole('alert')
    .getByText(/^No worker has brought a model yet.* It asks to try again in \d+ s\.$/)
    .waitFor();
  const card: PictureCard = {
    id: 'tiny',
    created: 1_700_000_000,
    ownedBy: 'tests',
    kind: 'picture',
    pipeline: 'StableDiffusionPipeline',
    sizes: { multiple: 32, min: 32, max: 320, default: { width: 96, height: 96 } },
    steps: { min: 2, max: 90, default: 12 },
    guidance: { min: 1, max: 20, default: 3 },
    schedulers: ['ddim', 'euler'],
    defaultScheduler: 'ddim',
    maxPromptTokens: 77,
  };
  await publishModel(fresh.store, card);
  await page.getByText('no worker serves it now; reads 77 tokens').waitFor();
  await page.getByText('32 to 320 pixels a side, in steps of 32').waitFor();
  await page.getByText('2 to 90', { exact: true }).waitFor();
  expect(await page.getByLabel('Width').inputValue()).toBe('96');
});

it('says that the server has never heard of a request', async () => {
  const page = await open();
  const entry = { id: 'emoji-sd-00000000000000000000000000', createdAtMs: 1, request: { prompt: 'a ghost' } };
  await page.evaluate(`localStorage.setItem('darkroom.gallery', '${JSON.stringify([entry])}')`);
  await page.reload();
  await cardOf(page, 'a ghost').getByText('The server does not know this request').waitFor();
  expect(await page.getByRole('button', { name: 'Cancel' }).count()).toBe(0);
});

it('shows the curl line for copying by hand where a page may not use the clipboard', async () => {
  const page = await open();
  await page.evaluate(`navigator.clipboard.writeText = () => Promise.reject(new Error('no'))`);
  const card = await ask(page, 'pizza', 2);
  await card.getByRole('button', { name: 'Copy as curl' }).click();
  expect(await page.getByRole('textbox', { name: 'Copy this line' }).inputValue()).toMatch(/^curl -s 'http.*"pizza"/);
});
