/** The API reference page in a browser, behind a proxy that serves it under a path prefix. */
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { openTestApi } from '../../apps/api/src/testing/test-api.ts';
import { launchChromium, pageTimeoutMs } from './chromium.ts';

const prefix = '/darkroom';

/** Forwards paths under the prefix without the prefix; anything else is a 404. */
async function startProxy(target: string): Promise<string> {
  const proxy = createServer((incoming, outgoing) => {
    if (incoming.url?.startsWith(`${prefix}/`) !== true) return void outgoing.writeHead(404).end();
    const { method, headers } = incoming;
    const passed = request(`${target}${incoming.url.slice(prefix.length)}`, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(passed);
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  onTestFinished(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

it('the API reference lists routes and answers, tries them out, and fits a phone', async () => {
  const url = await startProxy((await listen(await openTestApi())).url);
  const browser = await launchChromium();
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  page.setDefaultTimeout(pageTimeoutMs);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => void (message.type() === 'error' && faults.push(message.text())));
  await page.goto(`${url}${prefix}/docs`);
  await page.getByRole('button', { name: /^GET \/health / }).click();
  await page.getByRole('button', { name: 'Try it out' }).click();
  const answered = page.waitForResponse((response) => response.url().endsWith('/health'));
  await page.getByRole('button', { name: 'Execute' }).click();
  const response = await answered;
  expect([response.url(), response.status()]).toEqual([`${url}${prefix}/health`, 200]);
  await page.getByText('worker_pool_initialized').first().waitFor();
  await page.getByRole('button', { name: /^POST \/v1\/predict / }).click();
  await page.getByText('"is_possible": true').first().waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  expect(faults).toEqual([]);
});
