/** Adds a read-only Bull Board of the webhook deliveries in BullMQ. `/v1/webhooks` resends webhooks. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { HonoAdapter } from '@bull-board/hono';
import type { StoreConnection } from '@darkroom/store';
import { serveStatic } from '@hono/node-server/serve-static';
import { boardPath } from '../auth/admin-access.ts';
import type { ApiContext } from '../context/context.ts';
import { pathPrefixOf } from '../http/public-url.ts';
import { pageHeaders } from '../pages/page-file.ts';
import type { Api } from '../http/api-env.ts';

/** Allows the board's inline styles, and blocks the font that it loads from a third-party server. */
const headers = pageHeaders({ 'style-src': "'self' 'unsafe-inline'", 'font-src': "'self'", 'base-uri': "'self'" });

export function addAdminBoard(api: Api, { withStore, config }: ApiContext): void {
  const pathPrefix = pathPrefixOf(config.publicUrl);
  const adapter = new ReadOnlyAdapter(serveStatic);
  adapter.setBasePath(boardPath);
  const board = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Darkroom queues',
        hideDocsLink: true,
        // Needs CLIENT LIST, which the Redis user may not call; `/status` shows the workers.
        showWorkers: false,
        miscLinks: [{ text: 'Darkroom', url: `${pathPrefix}/admin` }],
      },
    },
  });
  // Errors go to the app's error handler.
  adapter.setErrorHandler((error) => {
    throw error;
  });
  let isQueueAdded = false;
  api.use(`${boardPath}/*`, async (c, next) => {
    for (const [name, value] of Object.entries(headers)) c.header(name, value);
    if (!c.req.path.startsWith(`${boardPath}/api/`)) return next();
    await withStore(async (store) => {
      if (!isQueueAdded) board.addQueue(createQueueAdapter(store));
      isQueueAdded = true;
      await next();
    });
  });
  const plugin = adapter.registerPlugin();
  // URLs in the page need the proxy's path prefix; the routes registered above must not have it.
  adapter.setBasePath(`${pathPrefix}${boardPath}`);
  api.route(boardPath, plugin);
}

/** Hono adapter that registers only GET routes. */
class ReadOnlyAdapter extends HonoAdapter {
  override setApiRoutes(routes: Parameters<HonoAdapter['setApiRoutes']>[0]): this {
    return super.setApiRoutes(routes.filter(({ method }) => method === 'get'));
  }
}

function createQueueAdapter(store: StoreConnection): BullMQAdapter {
  const adapter = new BullMQAdapter(store.deliveries(), { readOnlyMode: true, displayName: 'webhooks' });
  // Hide the other fields: the body, and the webhook's URL, which may contain a secret.
  adapter.setFormatter('data', ({ requestId, type }: Record<string, unknown>) => ({ requestId, type }));
  return adapter;
}
