/** Pages of other origins in a real browser, against a server without API keys. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { publishModel } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import type { Page } from 'playwright-core';
import { expect, it, onTestFinished } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { useChromium } from './chromium.ts';
import { openSystem, type System } from './system.ts';

const browser = useChromium();
const forms = ['multipart/form-data', 'text/plain', 'application/x-www-form-urlencoded'];
const routes = ['/v1/predict', '/v1/images/edits', '/v1/images/generations', '/generate', '/v1/chat/completions'];

const fetchForm = (url: string): string => `(async () => {
  const body = new FormData();
  body.set('prompt', 'a fox');
  const send = (sent) => fetch(${JSON.stringify(url)}, { method: 'POST', mode: 'no-cors', body: sent }).catch(() => {});
  await Promise.all([send(body), send('{"prompt":"a fox"}')]);
})()`;
const submitForm = (url: string, type: string): string => `(() => {
  const form = document.body.appendChild(document.createElement('form'));
  Object.assign(form, { method: 'post', action: ${JSON.stringify(url)}, enctype: ${JSON.stringify(type)} });
  Object.assign(form.appendChild(document.createElement('input')), { name: 'prompt', value: 'a fox' });
  form.submit();
})()`;

/** Posts to each route by fetch and by each form encoding. Returns the statuses that the browser received. */
async function attack(page: Page, origin: string, target: string): Promise<number[]> {
  const statuses: number[] = [];
  for (const route of routes) {
    const url = target + route;
    for (const type of forms) {
      await page.goto(origin);
      await page.evaluate(fetchForm(url));
      const answered = page.waitForResponse((response) => response.request().isNavigationRequest());
      await page.evaluate(submitForm(url, type));
      statuses.push((await answered).status());
      await page.waitForURL(url);
    }
  }
  return statuses;
}

/** Opens a page of another origin: `localhost` is cross-site to 127.0.0.1, another port is same-site. */
async function openOtherOrigin(host: string): Promise<{ page: Page; origin: string }> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><body></body>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const context = await browser().newContext();
  onTestFinished(async () => {
    await context.close();
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  const page = await context.newPage();
  await page.goto(origin);
  return { page, origin };
}

async function requestsOf(system: System): Promise<string[]> {
  return (await allKeys(system.store)).filter((key) => key.includes(':request:'));
}

async function openApi(environment: Record<string, string> = {}): Promise<System> {
  const system = await openSystem({ parts: [{ name: 'api', environment }] });
  await publishModel(system.store, card);
  return system;
}

it.each([
  ['localhost', 'cross-site'],
  ['127.0.0.1', 'same-site'],
])('refuses form posts from a page of %s (%s) with 403', async (host) => {
  const system = await openApi();
  const { page, origin } = await openOtherOrigin(host);
  expect(new Set(await attack(page, origin, system.url))).toEqual(new Set([403]));
  expect(await requestsOf(system)).toEqual([]);
  // The same form from the server's own page is accepted.
  await page.goto(`${system.url}/client.html`);
  const status = await page.evaluate<number>(`(async () => {
    const body = new FormData();
    body.set('prompt', 'a fox');
    return (await fetch('/v1/predict', { method: 'POST', body })).status;
  })()`);
  expect([status, (await requestsOf(system)).length]).toEqual([202, 1]);
});

it('accepts requests of an origin in CORS_ORIGINS', async () => {
  const { page, origin } = await openOtherOrigin('localhost');
  const system = await openApi({ CORS_ORIGINS: origin });
  const status = await page.evaluate<number>(`(async () => {
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ prompt: 'a fox' });
    return (await fetch('${system.url}/v1/predict', { method: 'POST', headers, body })).status;
  })()`);
  expect([status, (await requestsOf(system)).length]).toEqual([202, 1]);
});
