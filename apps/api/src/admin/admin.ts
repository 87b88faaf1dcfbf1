import type { ApiContext } from '../context.ts';
import type { Api } from '../http/api-route.ts';
import { addAdminBoard } from './admin-board.ts';
import { addAdminModelRoutes } from './admin-models.ts';
import { addAdminPage } from '../pages/page.ts';
import { addAdminRequestRoutes } from './admin-requests.ts';
import { addAdminWorkerRoutes } from './admin-workers.ts';

/** All under `/admin`; `authenticate` lets nobody else come here. */
export function addAdminRoutes(api: Api, context: ApiContext): void {
  addAdminPage(api);
  addAdminModelRoutes(api, context);
  addAdminWorkerRoutes(api, context);
  addAdminRequestRoutes(api, context);
  addAdminBoard(api, context);
}
