import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import type { Api } from '../http/api-route.ts';
import { pageHeaders } from './page-headers.ts';

// Apps may not import apps, and a page of static files exports nothing to import: it is found by its place, which is
// the same from src/ and from dist/, in a checkout and in an image that copies apps/ whole. So it needs no setting.
const builtPage = join(import.meta.dirname, '../../../page/dist');

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

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
    const name = c.req.param('name');
    const type = types[extname(name)];
    const asset = type === undefined ? undefined : await readOrUndefined(join(directory, 'assets', name));
    if (type === undefined || asset === undefined) return c.notFound();
    return c.body(new Uint8Array(asset), 200, {
      ...headers,
      'Content-Type': type,
      'Cache-Control': 'public, max-age=31536000, immutable',
    });
  });
}

async function page(c: ApiCall, directory: string, name: string): Promise<Response> {
  const content = await readOrUndefined(join(directory, name));
  if (content === undefined) throw notBuilt();
  // Asked for again every time: it names the assets of its own build.
  return c.body(new Uint8Array(content), 200, {
    ...headers,
    'Content-Type': 'text/html; charset=utf-8',
    'Cache-Control': 'no-cache',
  });
}

async function readOrUndefined(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function notBuilt(): ApiError {
  const message = 'The page was not built: run `npm run build`. The API works without it; /docs shows it.';
  return new ApiError({ status: 404, code: 'page_not_built', message });
}
