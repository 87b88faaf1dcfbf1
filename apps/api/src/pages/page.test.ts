import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OpenAPIHono } from '@hono/zod-openapi';
import { expect, it, onTestFinished } from 'vitest';
import type { ApiEnv, Api } from '../http/api-env.ts';
import { handleError } from '../http/error-response.ts';
import { createLogger } from '@darkroom/service';
import { addPageRoutes } from './page.ts';

function openPage(files: Readonly<Record<string, string>>): Api {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-page-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'assets'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(directory, name), content);
  const api: Api = new OpenAPIHono<ApiEnv>();
  api.onError(handleError(createLogger({ app: 'api', level: 'silent' })));
  addPageRoutes(api, directory);
  return api;
}

const headersOf = (response: Response, ...names: string[]): (string | null)[] =>
  names.map((name) => response.headers.get(name));

it('serves the page with no-cache and a CSP that allows only this server', async () => {
  const api = openPage({ 'client.html': '<p>page</p>' });
  const page = await api.request('/client.html');
  expect([page.status, await page.text()]).toEqual([200, '<p>page</p>']);
  expect(headersOf(page, 'content-type', 'cache-control')).toEqual(['text/html; charset=utf-8', 'no-cache']);
  const policy = page.headers.get('content-security-policy')!;
  expect(policy).toContain("default-src 'none'; script-src 'self'");
  expect(policy).not.toContain('unsafe');
  expect((await api.request('/')).headers.get('location')).toBe('client.html');
});

it('serves assets as immutable, with their content types', async () => {
  const api = openPage({ 'assets/client-1.js': 'let a', 'assets/client-1.css': 'a{}', 'assets/icon-1.svg': '<svg/>' });
  for (const [name, type] of [
    ['client-1.js', 'text/javascript; charset=utf-8'],
    ['client-1.css', 'text/css; charset=utf-8'],
    ['icon-1.svg', 'image/svg+xml'],
  ] as const) {
    const asset = await api.request(`/assets/${name}`);
    expect([asset.status, ...headersOf(asset, 'content-type', 'cache-control')]).toEqual([
      200,
      type,
      'public, max-age=31536000, immutable',
    ]);
  }
});

it('serves no files outside of its assets', async () => {
  const api = openPage({ 'client.html': 'x', 'assets/notes.txt': 'x', 'secret.js': 'x' });
  for (const path of ['notes.txt', 'absent.js', '..%2Fsecret.js', '../secret.js', '.hidden.js', ''])
    expect([path, (await api.request(`/assets/${path}`)).status]).toEqual([path, 404]);
});

it('returns 404 with a hint if the page was not built', async () => {
  const response = await openPage({}).request('/client.html');
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({
    message: 'The page was not built: run `npm run build`. The API works without it; /docs shows it.',
    error: { code: 'page_not_built' },
  });
});
