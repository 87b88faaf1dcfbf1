/** A real browser for the page's tests: Debian's Chromium, which `npm test` installs when it is missing. */
import { buffer } from 'node:stream/consumers';
import { type Browser, type BrowserServer, chromium, type Download, type Page } from 'playwright-core';
import { expect, inject, onTestFinished } from 'vitest';

/** It talks to our server only: nothing is fetched, updated or reported by itself. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  // Containers have little of it.
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** For whatever a page waits for, on a machine with other things to do. */
export const pagePatienceMs = 60_000;

const options = { executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: quiet };

/** One for whoever connects. */
export function launchChromiumServer(): Promise<BrowserServer> {
  return chromium.launchServer({ ...options, host: '127.0.0.1' });
}

/** The browser that all files of end-to-end tests share. Contexts keep them apart. */
export function connectToChromium(): Promise<Browser> {
  return chromium.connect(inject('chromiumUrl'));
}

/** One of its own, for a file elsewhere. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch(options);
}

/** What a browser has downloaded, wherever it runs. */
export async function downloadedBytes(downloading: Promise<Download>): Promise<Buffer> {
  return buffer(await (await downloading).createReadStream());
}

export interface OpenPageOptions {
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
  /** Runs before the page's own: for what no test can make a browser do. */
  script?: string;
  /** Runs before it is closed. */
  leave?: (page: Page) => Promise<void>;
}

/** The page in a browser profile of its own until the test is over, which fails if the page had faults. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 900, colorScheme = 'dark', script = '', leave }: OpenPageOptions = {},
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(pagePatienceMs);
  await context.addInitScript(script);
  const page = await context.newPage();
  /** Uncaught errors and refused scripts, as the console tells them. */
  const faults: string[] = [];
  onTestFinished(async ({ task }) => {
    // What a failure looked like, for whoever reads the log of CI.
    if (task.result?.state === 'fail')
      console.error(`The page said:\n${await page.locator('body').innerText().catch(String)}`);
    await leave?.(page);
    await context.close();
    expect(faults).toEqual([]);
  });
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  await page.goto(`${url}/client.html`);
  return page;
}
