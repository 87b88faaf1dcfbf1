/** Bull Board, for a look at the deliveries of webhooks, which BullMQ has. It only reads: `/v1/webhooks` is what sends again. */
import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { HonoAdapter } from '@bull-board/hono';
import type { StoreConnection } from '@darkroom/store';
import { serveStatic } from '@hono/node-server/serve-static';
import { boardPath } from '../auth/admin-access.ts';
import type { ApiContext } from '../context.ts';
import type { Api } from '../http/api-route.ts';
import { pageHeaders } from '../pages/page-file.ts';

/** It styles its elements in place, and would load a font from somebody else's server. */
const headers = pageHeaders({ 'style-src': "'self' 'unsafe-inline'", 'font-src': "'self'", 'base-uri': "'self'" });

export function addAdminBoard(api: Api, { askStore }: ApiContext): void {
  const adapter = new ReadingAdapter(serveStatic);
  adapter.setBasePath(boardPath);
  const board = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: 'Darkroom queues',
        hideDocsLink: true,
        // That would take CLIENT LIST, which is none of our users' business; `/status` has the workers.
        showWorkers: false,
        miscLinks: [{ text: 'Darkroom', url: '/admin' }],
      },
    },
  });
  // A fault is answered and logged like all others.
  adapter.setErrorHandler((error) => {
    throw error;
  });
  let isShown = false;
  api.use(`${boardPath}/*`, async (c, next) => {
    for (const [name, value] of Object.entries(headers)) c.header(name, value);
    if (!c.req.path.startsWith(`${boardPath}/api/`)) return next();
    await askStore(async (store) => {
      if (!isShown) board.addQueue(createQueueAdapter(store));
      isShown = true;
      await next();
    });
  });
  api.route(boardPath, adapter.registerPlugin());
}

/** Without the routes that change something. */
class ReadingAdapter extends HonoAdapter {
  override setApiRoutes(routes: Parameters<HonoAdapter['setApiRoutes']>[0]): this {
    return super.setApiRoutes(routes.filter(({ method }) => method === 'get'));
  }
}

function createQueueAdapter(store: StoreConnection): BullMQAdapter {
  const adapter = new BullMQAdapter(store.deliveries(), { readOnlyMode: true, displayName: 'webhooks' });
  // A message holds an address, which may hold a secret, and what is sent there.
  adapter.setFormatter('data', ({ requestId, type }: Record<string, unknown>) => ({ requestId, type }));
  return adapter;
}
