import { join } from 'node:path';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import type { Api } from '../http/api-route.ts';
import { pageFile, pageHeaders } from './page-file.ts';

// Apps may not import apps, and a page of static files exports nothing to import: it is found by its place, which is
// the same from src/ and from dist/, in a checkout and in an image that copies apps/ whole. So it needs no setting.
const builtPage = join(import.meta.dirname, '../../../page/dist');

/** Previews are data: URLs, pictures blob: URLs. */
const headers = pageHeaders({ 'img-src': "'self' blob: data:", 'require-trusted-types-for': "'script'" });

/** For operators; it shows nothing by itself, what it asks for needs a key. */
export function addAdminPage(api: Api, directory = builtPage): void {
  api.get('/admin', (c) => page(c, directory, 'admin.html'));
}

export function addPageRoutes(api: Api, directory = builtPage): void {
  // Whoever opens the URL that `npm start` prints gets to see pictures. Relative, for a proxy with a prefix.
  api.get('/', (c) => c.redirect('client.html'));
  api.get('/client.html', (c) => page(c, directory, 'client.html'));
  api.get('/assets/:name{[\\w-][\\w.-]*}', async (c) => {
    const path = join(directory, 'assets', c.req.param('name'));
    const cacheControl = 'public, max-age=31536000, immutable';
    return (await pageFile(c, path, { ...headers, 'Cache-Control': cacheControl })) ?? c.notFound();
  });
}

async function page(c: ApiCall, directory: string, name: string): Promise<Response> {
  // Asked for again every time: it names the assets of its own build.
  const answer = await pageFile(c, join(directory, name), { ...headers, 'Cache-Control': 'no-cache' });
  if (answer === undefined) throw notBuilt();
  return answer;
}

function notBuilt(): ApiError {
  const message = 'The page was not built: run `npm run build`. The API works without it; /docs shows it.';
  return new ApiError(404, 'page_not_built', message);
}
