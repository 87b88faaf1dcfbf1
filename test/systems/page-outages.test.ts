/** The page while the API it talks to is killed, away and started again. */
import { freePort } from '@darkroom/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { launchChromium, openPage, pagePatienceMs } from '../e2e/chromium.ts';
import {
  ask,
  cardOf,
  developed,
  downloadedFrom,
  positionsAsked,
  stepAt,
  stepOf,
  storedPicture,
} from '../e2e/request-card.ts';
import { type Part, patience as systemPatience, startSystem, stopSystem, type System } from '../e2e/system.ts';

let system: System;
let browser: Browser;
const patience = { timeout: pagePatienceMs };

beforeAll(async () => {
  // One port, so that the API is found again; no worker that stands still for a while is taken for dead.
  const environment = { ...systemPatience, PORT: String(await freePort()) };
  [system, browser] = await Promise.all([startSystem({ environment }), launchChromium()]);
});
afterAll(async () => {
  await browser.close();
  await stopSystem(system);
});

const open = (): Promise<Page> => openPage(browser, system.url);

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

it('asks a server that was killed and started again only for what it has not seen, and goes on by itself', async () => {
  const page = await open();
  const positions = positionsAsked(page);
  const card = await ask(page, 'a red apple', 200, 2);
  await expect.poll(() => stepOf(card), patience).toBeGreaterThan(10);
  const seen = await stepOf(card);
  // So that there is something left to be shown when the API is back.
  const worker = system.part('worker').process.pid!;
  process.kill(worker, 'SIGSTOP');
  await killApi();
  const notice = page.getByText('The server cannot be reached');
  await notice.waitFor();
  await system.start('api');
  process.kill(worker, 'SIGCONT');
  await card.locator('img.preview').first().waitFor();
  await notice.waitFor({ state: 'hidden' });
  await developed(card);
  expect(await stepAt(page, system.url, positions.at(-1)!)).toBeGreaterThanOrEqual(seen);
  expect(await downloadedFrom(card)).toEqual(await storedPicture(page, system.url));
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
