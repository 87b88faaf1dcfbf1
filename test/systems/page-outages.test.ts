/** The page while its API is killed, unavailable, and started again. */
import { freePort } from '@darkroom/testing';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { launchChromium, openPage, pageTimeoutMs } from '../e2e/chromium.ts';
import {
  submitPrompt,
  cardOf,
  developed,
  downloadedFrom,
  requestedPositions,
  stepAt,
  stepOf,
  storedImage,
} from '../e2e/request-card.ts';
import { type Part, longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

let system: System;
let browser: Browser;
const pollOptions = { timeout: pageTimeoutMs };

beforeAll(async () => {
  // A fixed port lets the page reach the restarted API. A long worker TTL keeps a frozen worker from being reaped.
  const environment = { ...longWorkerTtl, PORT: String(await freePort()) };
  [system, browser] = await Promise.all([startSystem({ environment }), launchChromium()]);
});
afterAll(async () => {
  await browser.close();
  await stopSystem(system);
});

const open = (): Promise<Page> => openPage(browser, system.url);

/** Kills the API. If the test ends without one, starts it again for the next test. */
async function killApi(): Promise<void> {
  await system.part('api').kill();
  onTestFinished(async () => {
    if (!system.parts.some(isLiveApi)) await system.start('api');
  });
}

function isLiveApi({ name, process }: Part): boolean {
  return name === 'api' && process.exitCode === null && process.signalCode === null;
}

it('reconnects after the API is killed and resumes from the last seen event', async () => {
  const page = await open();
  const positions = requestedPositions(page);
  const card = await submitPrompt(page, 'a red apple', 200, 2);
  await expect.poll(() => stepOf(card), pollOptions).toBeGreaterThan(10);
  const seen = await stepOf(card);
  // A frozen worker leaves progress to show when the API is back.
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
  expect(await downloadedFrom(card)).toEqual(await storedImage(page, system.url));
});

it('shows that the API is unreachable, and submits a new request once when it is back', async () => {
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
