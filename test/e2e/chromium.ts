/** A real browser for the page's tests: Debian's Chromium, which `npm test` installs if it is missing. */
import { buffer } from 'node:stream/consumers';
import { type Browser, type BrowserServer, chromium, type Download, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest';

/** Prevents requests of the browser itself, such as updates and reports. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  // /dev/shm is small in containers.
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** Timeout of each wait for the page, long enough for a busy machine. */
export const pageTimeoutMs = 60_000;

const options = { executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: quiet };

/** Launches a browser server for several test processes. */
export function launchChromiumServer(): Promise<BrowserServer> {
  return chromium.launchServer({ ...options, host: '127.0.0.1' });
}

/**
 * Connects a test file to the browser that all end-to-end test files share. Each test uses its own context. Returns the
 * browser, for tests and hooks.
 */
export function useChromium(): () => Browser {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.connect(inject('chromiumUrl'));
  });
  afterAll(() => browser.close());
  return () => browser;
}

/** Launches a browser for one file. */
export function launchChromium(): Promise<Browser> {
  return chromium.launch(options);
}

/** Returns the bytes of a download, wherever the browser runs. */
export async function downloadedBytes(downloading: Promise<Download>): Promise<Buffer> {
  return buffer(await (await downloading).createReadStream());
}

export interface OpenPageOptions {
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
  /** Script that runs before the page's own scripts. */
  script?: string;
  /** False: the form's section "More" is closed, as in a new browser profile. */
  isMoreOpen?: boolean;
  /** Called before the page is closed. */
  leave?: (page: Page) => Promise<void>;
}

/** Opens the page in its own browser profile. The test fails if the page logged an error or threw. */
export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, height = 900, colorScheme = 'dark', script = '', isMoreOpen = true, leave }: OpenPageOptions = {},
): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme,
    permissions: ['clipboard-read', 'clipboard-write'],
  });
  context.setDefaultTimeout(pageTimeoutMs);
  if (isMoreOpen) await context.addInitScript(`localStorage.setItem('darkroom.more', 'open')`);
  await context.addInitScript(script);
  const page = await context.newPage();
  /** Uncaught errors and console errors. */
  const faults: string[] = [];
  onTestFinished(async ({ task }) => {
    // Shows the page's text in the log of CI.
    if (task.result?.state === 'fail')
      console.error(`Text of the page:\n${await page.locator('body').innerText().catch(String)}`);
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
