/** The page for operators in a browser: it shows the system as it is, and does what its buttons say. */
import { cancelRequest, createWebhookId, enqueueWebhooks, readRequest, readWorkers } from '@darkroom/store';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { launchChromium, pagePatienceMs } from '../e2e/chromium.ts';
import { failLeased, startFakeWorker } from './fake-failure.ts';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';

const asAlice = { 'content-type': 'application/json', authorization: 'Bearer key-of-alice' };
const environment = { API_KEYS: 'alice:key-of-alice', ADMIN_KEYS: 'olga:key-of-olga' };
/** For what the page learns at its next look, or a picture takes. */
const patience = { timeout: pagePatienceMs };
let system: System;
let browser: Browser;
let stopFakeWorker: () => void;

beforeAll(async () => {
  [system, browser] = await Promise.all([startSystem({ environment }), launchChromium()]);
  // A second model, whose worker is in the tests' hands.
  stopFakeWorker = await startFakeWorker(system.store);
});
afterAll(async () => {
  stopFakeWorker();
  await browser.close();
  await stopSystem(system);
});

async function open(path = '/admin', options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: 'dark', ...options });
  const faults: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  context.setDefaultTimeout(pagePatienceMs);
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    // Bull Board asks for a font at somebody else's server, and does not get it.
    if (message.type() === 'error' && !/^Failed to load resource|fonts\.googleapis\.com/.test(message.text()))
      faults.push(message.text());
  });
  await page.goto(`${system.url}${path}`);
  return page;
}

/** With the key of an admin. */
async function openAsOlga(options?: BrowserContextOptions): Promise<Page> {
  const page = await open('/admin', options);
  await saveKey(page, 'key-of-olga');
  await page.getByText('As of').waitFor();
  return page;
}

async function saveKey(page: Page, key: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'Admin key' });
  await dialog.getByText('The server wants an admin key').waitFor();
  await dialog.getByLabel('Key', { exact: true }).fill(key);
  await page.keyboard.press('Enter');
}

async function submit(body: object): Promise<string> {
  const request = { method: 'POST', headers: asAlice, body: JSON.stringify({ prompt: 'a secret fox', ...body }) };
  const response = await fetch(`${system.url}/v1/predict`, request);
  return ((await response.json()) as { request_id: string }).request_id;
}

async function stateOf(id: string): Promise<string> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.state : result.status;
}

/** A request of `tiny` that has failed. */
async function fail(): Promise<string> {
  const id = await submit({ model: 'tiny' });
  await failLeased(system.store, id);
  return id;
}

/** Of the page's background: 0 is black, 765 white. */
async function brightness(page: Page): Promise<number> {
  const color = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  const [red = 0, green = 0, blue = 0] = color.match(/[\d.]+/g)!.map(Number);
  return red + green + blue;
}

function rowOf(page: Page, name: string) {
  return page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) });
}

it('asks for the key of an admin, says what is wrong with another, and keeps it', async () => {
  const page = await open();
  await saveKey(page, 'key-of-alice');
  await page.getByText('This key may not administer, expected one of ADMIN_KEYS.').waitFor();
  await saveKey(page, 'key-of-olga');
  await rowOf(page, 'emoji-sd').first().waitFor();
  await page.reload();
  await rowOf(page, 'emoji-sd').first().waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it("shows models, workers and what failed, and nobody's prompt", async () => {
  const id = await fail();
  const page = await openAsOlga();
  const model = rowOf(page, 'emoji-sd').first();
  expect(await model.getByRole('cell').first().textContent()).toBe('serving');
  const worker = rowOf(page, 'fake');
  expect(await worker.textContent()).toMatch(/tiny.*idle.*cpu.*0 of 64.* ago/s);
  const dead = rowOf(page, id);
  expect(await dead.textContent()).toMatch(/alice.*the engine failed internal.*1.* ago/s);
  expect(await page.content()).not.toContain('secret fox');
});

it('pauses a model, which then starts nothing, and resumes it', async () => {
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Pause emoji-sd' }).click();
  const resume = page.getByRole('button', { name: 'Resume emoji-sd' });
  await resume.waitFor();
  await rowOf(page, 'emoji-sd').first().getByText('paused').waitFor();
  const id = await submit({ model: 'emoji-sd', num_inference_steps: 4 });
  await expect.poll(() => rowOf(page, 'emoji-sd').first().getByRole('cell').nth(1).textContent(), patience).toBe('1');
  expect(await stateOf(id)).toBe('queued');
  await resume.click();
  await expect.poll(() => stateOf(id), patience).toBe('succeeded');
  await page.getByRole('button', { name: 'Pause emoji-sd' }).waitFor();
  expect(await page.getByRole('log').textContent()).toMatch(/emoji-sd is paused.*emoji-sd goes on/s);
});

it('has a model loaded anew', async () => {
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Reload emoji-sd' }).click();
  const said = 'The workers of emoji-sd load its files anew';
  await expect.poll(() => page.getByRole('log').textContent(), patience).toContain(said);
});

it('drains a worker, which finishes and stays, and resumes it', async () => {
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Drain fake' }).click();
  await rowOf(page, 'fake').getByText('drained').waitFor();
  await rowOf(page, 'tiny').first().getByText('no worker').waitFor();
  expect(await readWorkers(system.store, 'tiny', 10)).toMatchObject([{ state: 'draining', isStopping: false }]);
  await page.getByRole('button', { name: 'Resume fake' }).click();
  await rowOf(page, 'fake').getByText('idle').waitFor();
});

it('has a worker sleep, says so, and wakes it', async () => {
  const [worker] = await readWorkers(system.store, 'emoji-sd', 1);
  const page = await openAsOlga();
  await page.getByRole('button', { name: `Sleep ${worker!.workerId}` }).click();
  await rowOf(page, worker!.workerId).getByText('asleep').waitFor();
  expect(await readWorkers(system.store, 'emoji-sd', 1)).toMatchObject([{ state: 'asleep', isLoaded: false }]);
  await page.getByRole('button', { name: `Wake ${worker!.workerId}` }).click();
  await rowOf(page, worker!.workerId).getByText('idle').waitFor();
});

it('retries what failed as a new request', async () => {
  const id = await fail();
  const page = await openAsOlga();
  await page.getByRole('button', { name: `Retry ${id}` }).click();
  await page.getByRole('button', { name: `Retry ${id}` }).waitFor({ state: 'detached' });
  const [, again = ''] = /Retried \S+ as (\S+)\./.exec((await page.getByRole('log').textContent()) ?? '') ?? [];
  expect(await readRequest(system.store, again)).toMatchObject({ request: { owner: 'alice', retryOf: id } });
  expect(await page.evaluate<string>('document.activeElement.id')).toBe('failures-title');
  await cancelRequest(system.store, again);
});

it('drops what failed, by the keyboard, after it has asked', async () => {
  const id = await fail();
  const page = await openAsOlga();
  const drop = page.getByRole('button', { name: `Drop ${id}` });
  await drop.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Drop this request?' });
  await dialog.getByText(id).waitFor();
  // What has the focus changes nothing.
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(await stateOf(id)).toBe('failed');
  await drop.focus();
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Drop it' }).click();
  await drop.waitFor({ state: 'detached' });
  expect(await stateOf(id)).toBe('gone');
});

it('says what could not be done', async () => {
  const page = await openAsOlga();
  await system.store.redis.hset(`${system.prefix}:models`, 'passing', JSON.stringify({ ...card, id: 'passing' }));
  const pause = page.getByRole('button', { name: 'Pause passing' });
  await pause.waitFor();
  await page.route('**/pause', async (route) => {
    await system.store.redis.hdel(`${system.prefix}:models`, 'passing');
    await route.continue();
  });
  await pause.click();
  const problem = page.getByRole('alert');
  await expect.poll(() => problem.textContent(), patience).toMatch(/^Model "passing" is not here, expected one of/);
  await pause.waitFor({ state: 'detached' });
  // Until something else is done, whatever the page learns meanwhile.
  expect(await problem.isVisible()).toBe(true);
});

it('keeps the focus and the rows while what they show changes', async () => {
  const page = await openAsOlga();
  const pause = page.getByRole('button', { name: 'Pause tiny' });
  await pause.focus();
  const id = await submit({ model: 'emoji-sd', num_inference_steps: 4 });
  await expect.poll(() => stateOf(id), patience).toBe('succeeded');
  await page.waitForResponse((response) => response.url().endsWith('/status'));
  await page.waitForResponse((response) => response.url().endsWith('/status'));
  expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toBe('Pause tiny');
});

it('asks for nothing while nobody looks', async () => {
  const page = await openAsOlga();
  await page.clock.install();
  await page.reload();
  await page.getByText('As of').waitFor();
  let asked = 0;
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
  page.on('request', () => asked++);
  await page.clock.runFor(60_000);
  expect(asked).toBe(0);
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { get: () => false });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
  await expect.poll(() => asked, patience).toBeGreaterThan(0);
});

it('has a name for everything, fits a phone, and is light or dark as the system is', async () => {
  await fail();
  const page = await openAsOlga({ viewport: { width: 360, height: 740 }, colorScheme: 'light' });
  await page.getByRole('button', { name: /^Drop/ }).first().waitFor();
  const unnamed = await page.evaluate<string[]>(`
    [...document.querySelectorAll('button, a, input, meter, dialog, section')]
      .filter((element) => element.checkVisibility())
      .filter((element) => !(element.ariaLabel ?? element.getAttribute('aria-labelledby') ?? element.textContent.trim()) && !element.labels?.length)
      .map((element) => element.outerHTML)
  `);
  expect(unnamed).toEqual([]);
  expect(await page.evaluate<number[]>('[document.documentElement.scrollWidth, innerWidth]')).toEqual([360, 360]);
  expect(await brightness(page)).toBeGreaterThan(600);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await brightness(page)).toBeLessThan(120);
});

it('opens Bull Board with the key as a password, read-only', async () => {
  const requestId = await submit({ model: 'emoji-sd', num_inference_steps: 1 });
  const id = createWebhookId(requestId, 1, 'alice');
  const message = { id, owner: 'alice', requestId, type: 'request.completed', payload: '{"prompt":"a secret fox"}' };
  // Receivers of its own network are not told: it is tried, and stays.
  await enqueueWebhooks(system.store, [{ ...message, url: 'http://127.0.0.1:9/' }], { attempts: 1 });
  const page = await open('/admin/queues', { httpCredentials: { username: 'olga', password: 'key-of-olga' } });
  await page.getByText('webhooks').first().waitFor();
  await page.goto(`${system.url}/admin/queues/queue/queue`);
  await page.getByText(id).first().waitFor();
  expect(await page.getByRole('button', { name: /retry|clean|remove|pause|empty|add job/i }).count()).toBe(0);
  expect(await page.content()).not.toContain('secret fox');
});
