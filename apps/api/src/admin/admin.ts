import type { Api } from '../http/api-route.ts';
import { addAdminBoard } from './admin-board.ts';
import { addAdminModelRoutes, type AdminModelDeps } from './admin-models.ts';
import { addAdminPage } from '../pages/page.ts';
import { addAdminRequestRoutes, type AdminRequestDeps } from './admin-requests.ts';
import { addAdminWorkerRoutes } from './admin-workers.ts';

/** All under `/admin`; `authenticate` lets nobody else come here. */
export function addAdminRoutes(api: Api, deps: AdminModelDeps & AdminRequestDeps): void {
  addAdminPage(api);
  addAdminModelRoutes(api, deps);
  addAdminWorkerRoutes(api, deps);
  addAdminRequestRoutes(api, deps);
  addAdminBoard(api, deps);
}
