/** The admin page in a browser: it shows the state of the system, and its buttons perform the actions they name. */
import type { Failure } from '@darkroom/core';
import {
  cancelRequest,
  createWebhookId,
  enqueueWebhooks,
  publishModel,
  readRequest,
  readWorkers,
} from '@darkroom/store';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { axeFindings } from '../e2e/axe.ts';
import { launchChromium, pageTimeoutMs } from '../e2e/chromium.ts';
import { submit } from '../e2e/client.ts';
import { failLeased, startFakeWorker } from './fake-failure.ts';
import { startSystem, stopSystem, type System } from '../e2e/system.ts';

const asAlice = { 'content-type': 'application/json', authorization: 'Bearer secret-key-of-alice' };
const environment = { API_KEYS: 'alice:secret-key-of-alice', ADMIN_KEYS: 'olga:secret-key-of-olga' };
/** Timeout for the page's next refresh, or for one image. */
const pollOptions = { timeout: pageTimeoutMs };
let system: System;
let browser: Browser;
let stopFakeWorker: () => void;

beforeAll(async () => {
  [system, browser] = await Promise.all([startSystem({ environment }), launchChromium()]);
  // A second model, whose worker the tests play.
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
  context.setDefaultTimeout(pageTimeoutMs);
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    // Bull Board requests a font from an external server, which the page's policy blocks.
    if (message.type() === 'error' && !/^Failed to load resource|fonts\.googleapis\.com/.test(message.text()))
      faults.push(message.text());
  });
  await page.goto(`${system.url}${path}`);
  return page;
}

/** Opens the page and enters an admin key. */
async function openAsOlga(options?: BrowserContextOptions): Promise<Page> {
  const page = await open('/admin', options);
  await saveKey(page, 'secret-key-of-olga');
  await page.getByText('As of').waitFor();
  return page;
}

async function saveKey(page: Page, key: string): Promise<void> {
  const dialog = page.getByRole('dialog', { name: 'Admin key' });
  await dialog.getByText('The server requires a valid admin key').waitFor();
  await dialog.getByLabel('Key', { exact: true }).fill(key);
  await page.keyboard.press('Enter');
}

function submitAs(body: object): Promise<string> {
  return submit(system.url, { prompt: 'a secret fox', ...body }, asAlice);
}

async function stateOf(id: string): Promise<string> {
  const result = await readRequest(system.store, id);
  return result.status === 'found' ? result.request.state : result.status;
}

/** Submits a request of `tiny` and fails it; returns its id. */
async function fail(failure?: Failure): Promise<string> {
  const id = await submitAs({ model: 'tiny' });
  await failLeased(system.store, id, failure);
  return id;
}

/** Returns the brightness of the page's background, from 0 (black) to 765 (white). */
async function brightness(page: Page): Promise<number> {
  const color = await page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor');
  const [red = 0, green = 0, blue = 0] = color.match(/[\d.]+/g)!.map(Number);
  return red + green + blue;
}

function rowOf(page: Page, name: string) {
  return page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) });
}

it('asks for an admin key, rejects a key without admin rights, and remembers a valid one', async () => {
  const page = await open();
  await saveKey(page, 'secret-key-of-alice');
  await page.getByText('This key has no admin access, expected one of ADMIN_KEYS.').waitFor();
  await saveKey(page, 'secret-key-of-olga');
  await rowOf(page, 'emoji-sd').first().waitFor();
  await page.reload();
  await rowOf(page, 'emoji-sd').first().waitFor();
  expect(await page.getByRole('dialog').count()).toBe(0);
});

it('shows models, workers and failed requests without their prompts', async () => {
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

it('shows refused files of a model with the reason', async () => {
  const reason = 'is cut short: <b>it ends in its header</b>';
  await publishModel(system.store, { ...card, refusedFiles: [{ file: 'loras/cut.safetensors', reason }] });
  onTestFinished(() => publishModel(system.store, card));
  const page = await openAsOlga();
  await expect.poll(() => rowOf(page, 'loras/cut.safetensors').textContent(), pollOptions).toMatch(/tiny/);
  expect(await rowOf(page, 'loras/cut.safetensors').textContent()).toContain(reason);
  await publishModel(system.store, card);
  await page.getByRole('heading', { name: 'Ignored files' }).waitFor({ state: 'hidden' });
});

it('shows the log lines of a failed request, also after it has expired', async () => {
  const details = 'RangeError: no memory\n    at draw (module.js:7:1)';
  const id = await fail({ code: 'engine_error', message: 'RangeError: no memory', details });
  await system.store.redis.del(system.store.keysOf('tiny').request(id));
  const page = await openAsOlga();
  expect(await rowOf(page, id).textContent()).toContain('fake: RangeError: no memory');
  await page.getByRole('button', { name: `Log lines ${id}` }).click();
  const dialog = page.getByRole('dialog', { name: 'Log lines' });
  await dialog.getByText('at draw (module.js:7:1)').waitFor();
  expect(await axeFindings(page)).toEqual([]);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: `Log lines ${await fail()}` }).click();
  await dialog.getByText('None were recorded.').waitFor();
});

it('adds an API key with limits, which clients can use until it is revoked', async () => {
  const page = await openAsOlga();
  const form = page.getByRole('form', { name: 'Add an API key' });
  await form.getByLabel('Owner').fill('alice');
  await form.getByRole('button', { name: 'Add key' }).click();
  await page.getByText('Name is "alice", expected a name that API_KEYS does not have').waitFor();
  await form.getByLabel('Owner').fill('carol');
  await form.getByLabel('Open requests').fill('7');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'New API key' });
  const key = await dialog.getByLabel('Key', { exact: true }).inputValue();
  expect(key).toMatch(/^dk-/);
  expect(await axeFindings(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await rowOf(page, 'carol').getByText('added').waitFor();
  expect(await rowOf(page, 'carol').textContent()).toContain('7');
  expect(await rowOf(page, 'olga').getByRole('button').count()).toBe(0);
  expect(await page.locator('#added-key').inputValue()).toBe('');
  const statusOf = async () =>
    (await fetch(`${system.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })).status;
  expect(await statusOf()).toBe(200);
  const revoke = page.getByRole('button', { name: 'Revoke carol' });
  await revoke.click();
  await page.getByRole('dialog', { name: 'Revoke this key?' }).getByRole('button', { name: 'Revoke it' }).click();
  await revoke.waitFor({ state: 'detached' });
  expect(await statusOf()).toBe(401);
});

it('pauses a model, whose requests then stay queued, and resumes it', async () => {
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Pause emoji-sd' }).click();
  const resume = page.getByRole('button', { name: 'Resume emoji-sd' });
  await resume.waitFor();
  await rowOf(page, 'emoji-sd').first().getByText('paused').waitFor();
  const id = await submitAs({ model: 'emoji-sd', num_inference_steps: 4 });
  await expect
    .poll(() => rowOf(page, 'emoji-sd').first().getByRole('cell').nth(1).textContent(), pollOptions)
    .toBe('1');
  expect(await stateOf(id)).toBe('queued');
  await resume.click();
  await expect.poll(() => stateOf(id), pollOptions).toBe('succeeded');
  await page.getByRole('button', { name: 'Pause emoji-sd' }).waitFor();
  expect(await page.getByRole('log').textContent()).toMatch(/emoji-sd is paused.*emoji-sd is resumed/s);
});

/** Returns when each loaded worker of emoji-sd registered, ms. */
async function loadedSince(): Promise<number[]> {
  const workers = await readWorkers(system.store, 'emoji-sd', 2);
  return workers.filter(({ isLoaded }) => isLoaded).map(({ registeredAtMs }) => registeredAtMs);
}

it('restarts the workers of a model', async () => {
  const [before] = await loadedSince();
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Restart emoji-sd' }).click();
  const expected = 'The workers of emoji-sd restart with its current files';
  await expect.poll(() => page.getByRole('log').textContent(), pollOptions).toContain(expected);
  // A fresh worker took the place of the only one; until then the model has none.
  await expect.poll(async () => (await loadedSince()).map((at) => at > before!), pollOptions).toEqual([true]);
});

it('shows the Forget button only for models without workers, and forgets such a model', async () => {
  await publishModel(system.store, { ...card, id: 'stopped' });
  const page = await openAsOlga();
  await rowOf(page, 'stopped').first().getByText('no worker').waitFor();
  expect(await page.getByRole('button', { name: 'Forget emoji-sd' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Forget stopped' }).click();
  await rowOf(page, 'stopped').waitFor({ state: 'detached' });
  expect(await page.getByRole('log').textContent()).toContain('stopped is forgotten');
  const { data } = (await (await fetch(`${system.url}/v1/models`, { headers: asAlice })).json()) as {
    data: { id: string }[];
  };
  expect(data.map(({ id }) => id)).not.toContain('stopped');
});

it('drains a worker, which stays registered, and resumes it', async () => {
  const page = await openAsOlga();
  await page.getByRole('button', { name: 'Drain fake' }).click();
  await rowOf(page, 'fake').getByText('drained').waitFor();
  await rowOf(page, 'tiny').first().getByText('no worker').waitFor();
  expect(await readWorkers(system.store, 'tiny', 10)).toMatchObject([{ state: 'draining', isStopping: false }]);
  await page.getByRole('button', { name: 'Resume fake' }).click();
  await rowOf(page, 'fake').getByText('idle').waitFor();
});

it('puts a worker to sleep, shows it as asleep, and wakes it', async () => {
  const [worker] = await readWorkers(system.store, 'emoji-sd', 1);
  const page = await openAsOlga();
  await page.getByRole('button', { name: `Sleep ${worker!.workerId}` }).click();
  await rowOf(page, worker!.workerId).getByText('asleep').waitFor();
  expect(await readWorkers(system.store, 'emoji-sd', 1)).toMatchObject([{ state: 'asleep', isLoaded: false }]);
  await page.getByRole('button', { name: `Wake ${worker!.workerId}` }).click();
  await rowOf(page, worker!.workerId).getByText('idle').waitFor();
});

it('retries a failed request as a new request', async () => {
  const id = await fail();
  const page = await openAsOlga();
  await page.getByRole('button', { name: `Retry ${id}` }).click();
  await page.getByRole('button', { name: `Retry ${id}` }).waitFor({ state: 'detached' });
  const [, again = ''] = /Retried \S+ as (\S+)\./.exec((await page.getByRole('log').textContent()) ?? '') ?? [];
  expect(await readRequest(system.store, again)).toMatchObject({ request: { owner: 'alice', retryOf: id } });
  expect(await page.evaluate<string>('document.activeElement.id')).toBe('failures-title');
  await cancelRequest(system.store, again);
});

it('drops a failed request by keyboard, after a confirmation', async () => {
  const id = await fail();
  const page = await openAsOlga();
  const drop = page.getByRole('button', { name: `Drop ${id}` });
  await drop.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Drop this request?' });
  await dialog.getByText(id).waitFor();
  // The button that has the focus cancels.
  await page.keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  expect(await stateOf(id)).toBe('failed');
  await drop.focus();
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Drop it' }).click();
  await drop.waitFor({ state: 'detached' });
  expect(await stateOf(id)).toBe('gone');
});

it('shows the error of an action that fails, until the next action', async () => {
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
  await expect
    .poll(() => problem.textContent(), pollOptions)
    .toMatch(/^Model "passing" was not found, expected one of/);
  await pause.waitFor({ state: 'detached' });
  // A refresh does not remove the error; only another action does.
  expect(await problem.isVisible()).toBe(true);
});

it('keeps the focus and the rows when a refresh changes their content', async () => {
  const page = await openAsOlga();
  const pause = page.getByRole('button', { name: 'Pause tiny' });
  await pause.focus();
  const id = await submitAs({ model: 'emoji-sd', num_inference_steps: 4 });
  await expect.poll(() => stateOf(id), pollOptions).toBe('succeeded');
  await page.waitForResponse((response) => response.url().endsWith('/status'));
  await page.waitForResponse((response) => response.url().endsWith('/status'));
  expect(await page.evaluate<string>('document.activeElement.ariaLabel')).toBe('Pause tiny');
});

it('stops polling while the page is hidden', async () => {
  const page = await openAsOlga();
  await page.clock.install();
  await page.reload();
  await page.getByText('As of').waitFor();
  let requests = 0;
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => true });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
  page.on('request', () => requests++);
  await page.clock.runFor(60_000);
  expect(requests).toBe(0);
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { get: () => false });
    document.dispatchEvent(new Event('visibilitychange'));
  `);
  await expect.poll(() => requests, pollOptions).toBeGreaterThan(0);
});

it('labels every control, fits a phone screen, and follows the light or dark color scheme', async () => {
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

it('on a phone, buttons cover no other cell, and every cell can be scrolled into view', async () => {
  await fail();
  const page = await openAsOlga({ viewport: { width: 390, height: 844 } });
  await page.getByRole('button', { name: /^Drop/ }).first().waitFor();
  const covered = await page.evaluate<string[]>(`
    [...document.querySelectorAll('tbody tr')].flatMap((row) => {
      const actions = row.querySelector('.act')?.getBoundingClientRect();
      const others = [...row.querySelectorAll('th, td:not(.act)')];
      return others.filter((cell) => actions && cell.getBoundingClientRect().right > actions.left + 1);
    }).map((cell) => cell.textContent)
  `);
  expect(covered).toEqual([]);
});

it.each([
  { width: 1280, height: 900, colorScheme: 'dark' as const },
  { width: 390, height: 844, colorScheme: 'light' as const },
])('has no axe findings: $width × $height, $colorScheme', async ({ colorScheme, ...viewport }) => {
  await fail();
  const page = await openAsOlga({ viewport, colorScheme });
  await page.getByRole('button', { name: /^Drop/ }).first().waitFor();
  expect(await axeFindings(page)).toEqual([]);
});

it('serves Bull Board read-only, with the admin key as password', async () => {
  const requestId = await submitAs({ model: 'emoji-sd', num_inference_steps: 1 });
  const id = createWebhookId(requestId, 1, 'alice');
  const message = { id, owner: 'alice', requestId, type: 'request.completed', payload: '{"prompt":"a secret fox"}' };
  // Private addresses are refused: the delivery fails and stays in the queue.
  await enqueueWebhooks(system.store, [{ ...message, url: 'http://127.0.0.1:9/' }], { attempts: 1 });
  const page = await open('/admin/queues', { httpCredentials: { username: 'olga', password: 'secret-key-of-olga' } });
  await page.getByText('webhooks').first().waitFor();
  await page.goto(`${system.url}/admin/queues/queue/queue`);
  await page.getByText(id).first().waitFor();
  expect(await page.getByRole('button', { name: /retry|clean|remove|pause|empty|add job/i }).count()).toBe(0);
  expect(await page.content()).not.toContain('secret fox');
});
