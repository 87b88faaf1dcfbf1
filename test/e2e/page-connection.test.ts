/** The page and the way to its server: cut, slow to come up, behind a proxy, shared by tabs, lossy. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, request as httpRequest } from 'node:http';
import { readFile } from 'node:fs/promises';
import type { PictureCard } from '@darkroom/kinds';
import { publishModel } from '@darkroom/store';
import type { Browser, Locator, Page } from 'playwright-core';
import { freePort } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { launchChromium, openPage, type OpenPageOptions, pagePatienceMs } from './chromium.ts';
import { openSystem, type Part, startSystem, stopSystem, type System } from './system.ts';

let system: System;
let browser: Browser;
const patience = { timeout: pagePatienceMs };

beforeAll(async () => {
  // Small chunks, so that pictures come in several; one port, so that the API is found again.
  const environment = { CHUNK_BYTES: '3000', PORT: String(await freePort()) };
  [system, browser] = await Promise.all([startSystem({ environment }), launchChromium()]);
});
afterAll(async () => {
  await browser.close();
  await stopSystem(system);
});

async function open(options?: OpenPageOptions, url = system.url): Promise<Page> {
  const { page, context, faults } = await openPage(browser, url, options);
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  return page;
}

async function ask(page: Page, prompt: string, steps: number, pictures = 1): Promise<Locator> {
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  await page.getByLabel('Pictures', { exact: true }).fill(String(pictures));
  await page.getByLabel('Prompt', { exact: true }).fill(prompt);
  await page.getByLabel('Steps', { exact: true }).fill(String(steps));
  await page.getByRole('button', { name: 'Develop' }).click();
  const card = cardOf(page, prompt);
  await card.waitFor();
  return card;
}

function cardOf(page: Page, prompt: string): Locator {
  return page.getByRole('article', { name: prompt, exact: true });
}

/** The whole picture, not a preview. */
function developed(card: Locator): Promise<void> {
  return card
    .getByRole('link', { name: /^Download/ })
    .first()
    .waitFor();
}

async function stepOf(card: Locator): Promise<number> {
  const words = await card.getByText(/^Step \d+ of \d+$/).textContent();
  return Number(/\d+/.exec(words!)![0]);
}

/** The positions from which the page asks for events, as it asks; 0 is the first. */
function positionsAsked(page: Page): number[] {
  const positions: number[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/events'))
      positions.push(Number.parseInt(request.headers()['last-event-id'] ?? '0', 10));
  });
  return positions;
}

/** However the test ends, the next one finds an API. */
async function killApi(): Promise<void> {
  await system.part('api').kill();
  onTestFinished(async () => {
    if (!system.parts.some(isLiveApi)) await system.start('api');
  });
}

function isLiveApi({ name, process }: Part): boolean {
  return name === 'api' && process.exitCode === null && process.signalCode === null;
}

it('asks a server that was killed and started again only for what it has not seen', async () => {
  const page = await open();
  const positions = positionsAsked(page);
  const card = await ask(page, 'a red apple', 200, 2);
  await expect.poll(() => stepOf(card), patience).toBeGreaterThan(10);
  const seen = await stepOf(card);
  await killApi();
  await page.getByText('The server cannot be reached').waitFor();
  await system.start('api');
  await developed(card);
  expect(positions.at(-1)).toBeGreaterThanOrEqual(seen);
});

it('says that a new request does not get through, and sends it, once, when it does', async () => {
  const page = await open();
  await page.getByLabel('Model').and(page.locator(':enabled')).waitFor();
  await killApi();
  await page.getByLabel('Prompt', { exact: true }).fill('a boat');
  await page.getByRole('button', { name: 'Develop' }).click();
  const words = page.getByRole('status').getByText('The server cannot be reached. Nothing is lost; trying again…');
  await words.waitFor();
  await system.start('api');
  await developed(cardOf(page, 'a boat'));
  await words.waitFor({ state: 'hidden' });
  expect(await page.getByRole('article').count()).toBe(1);
});

it('gives its stream back while nobody looks, and comes back where it was', async () => {
  const page = await open();
  const positions = positionsAsked(page);
  const hide = (isHidden: boolean): Promise<void> =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  const card = await ask(page, 'a guitar', 200, 2);
  await expect.poll(() => stepOf(card), patience).toBeGreaterThan(10);
  const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
  await hide(true);
  await closed;
  const seen = await stepOf(card);
  await hide(false);
  await developed(card);
  expect(positions).toHaveLength(2);
  expect(positions[0]).toBe(0);
  expect(positions[1]).toBeGreaterThanOrEqual(seen);
});

it('puts pictures together from their chunks, and asks for none twice', async () => {
  const page = await open();
  const fetched = imagesFetched(page);
  const card = await ask(page, 'a star', 4);
  expect(await downloadedFrom(card)).toEqual(await storedPicture(page));
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
  const card = await ask(page, 'a penguin', 6);
  expect(await downloadedFrom(card)).toEqual(await storedPicture(page));
  expect(fetched).toHaveLength(1);
});

function imagesFetched(page: Page): string[] {
  const fetched: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/images/')) fetched.push(request.url());
  });
  return fetched;
}

async function downloadedFrom(card: Locator): Promise<Buffer> {
  const downloading = card.page().waitForEvent('download');
  await card.getByRole('link', { name: /^Download/ }).click();
  return readFile(await (await downloading).path());
}

async function storedPicture(page: Page): Promise<Buffer> {
  const text = await page.evaluate<string>(`localStorage.getItem('darkroom.gallery')`);
  const [newest] = JSON.parse(text) as { id: string }[];
  const response = await fetch(`${system.url}/v1/predict/${newest!.id}/images/0`);
  return Buffer.from(await response.arrayBuffer());
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
