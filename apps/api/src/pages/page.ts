import { join } from 'node:path';
import type { ApiCall, Api } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { pathPrefixFor } from '../http/public-url.ts';
import { pageFile, pageHeaders } from './page-file.ts';

// Found by its relative path, since apps may not import apps. The path is the same from src/ and dist/, in a checkout
// and in a container image, so it needs no setting.
const builtPage = join(import.meta.dirname, '../../../page/dist');

/** Previews are data: URLs, images blob: URLs. */
const headers = pageHeaders({ 'img-src': "'self' blob: data:", 'require-trusted-types-for': "'script'" });

/** Adds the page for operators. The page itself is public; the routes that it calls need a key. */
export function addAdminPage(api: Api, directory = builtPage): void {
  api.get('/admin', (c) => page(c, directory, 'admin.html'));
}

export function addPageRoutes(api: Api, directory = builtPage): void {
  // Relative, for proxies that do not send X-Forwarded-Prefix.
  api.get('/', (c) => c.redirect(pathPrefixFor(c) === '' ? 'client.html' : `${pathPrefixFor(c)}/client.html`));
  api.get('/client.html', (c) => page(c, directory, 'client.html'));
  api.get('/assets/:name{[\\w-][\\w.-]*}', async (c) => {
    const path = join(directory, 'assets', c.req.param('name'));
    const cacheControl = 'public, max-age=31536000, immutable';
    return (await pageFile(c, path, { ...headers, 'Cache-Control': cacheControl })) ?? c.notFound();
  });
}

async function page(c: ApiCall, directory: string, name: string): Promise<Response> {
  // Revalidated every time: the page refers to the assets of its own build.
  const answer = await pageFile(c, join(directory, name), { ...headers, 'Cache-Control': 'no-cache' });
  if (answer === undefined) throw notBuilt();
  return answer;
}

function notBuilt(): ApiError {
  const message = 'The page was not built: run `npm run build`. The API works without it; /docs shows it.';
  return new ApiError(404, 'page_not_built', message);
}
