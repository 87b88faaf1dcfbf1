import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { addAdminRoutes } from './admin/admin.ts';
import { authenticate } from './auth/authenticate.ts';
import { checkHost } from './auth/host-check.ts';
import { type ApiDeps, createContext } from './context.ts';
import { addFalRoutes, falError } from './fal/fal.ts';
import { addFalProxyRoute, falPath } from './fal/fal-proxy.ts';
import type { ApiEnv } from './http/api-env.ts';
import { ApiError } from './http/api-error.ts';
import type { Api } from './http/api-route.ts';
import { cors } from './http/cors.ts';
import { errorResponse, handleError, showErrorsAs } from './http/error-response.ts';
import { measureRequests } from './http/measure-requests.ts';
import { requestLog } from './http/request-log.ts';
import { traceRequests } from './http/trace-requests.ts';
import { addImagesGenerationsRoute } from './openai/images-generations.ts';
import { addDocsRoutes } from './pages/docs.ts';
import { addPageRoutes } from './pages/page.ts';
import { addReplicateRoutes, replicateError } from './replicate/replicate.ts';
import { addCancelRoute } from './v1/cancel.ts';
import { addEventsRoute } from './v1/events.ts';
import { addHealthRoute } from './v1/health.ts';
import { addImageRoute } from './v1/image.ts';
import { addModelRoutes } from './v1/models.ts';
import { addPredictRoute } from './v1/predict.ts';
import { addRequestRoute } from './v1/request.ts';
import { addStatusRoute } from './v1/status.ts';
import { addWebhookRoutes } from './v1/webhook-deliveries.ts';

/** The whole API over one store: stateless, so any number of them can run side by side. */
export function createApp(deps: ApiDeps): Api {
  const context = createContext(deps);
  const api: Api = new OpenAPIHono<ApiEnv>({ getPath: falPath });
  api.use(traceRequests());
  api.use(measureRequests(context.metrics));
  api.use(requestLog(context.log));
  api.use(cors(context.config.corsOrigins));
  api.use('/fal/*', showErrorsAs(falError));
  api.use('/replicate/*', showErrorsAs(replicateError));
  api.use(checkHost(context.apiKeys, context.config));
  api.use(authenticate(context.apiKeys, context.adminAccess));
  api.use(methodNotAllowed({ app: api, onMethodNotAllowed: (c, methods) => errorResponse(c, wrongMethod(methods)) }));
  api.onError(handleError(context.log));
  api.notFound((c) => errorResponse(c, noSuchRoute()));
  addPredictRoute(api, context);
  addRequestRoute(api, context);
  addCancelRoute(api, context);
  addEventsRoute(api, context);
  addImageRoute(api, context);
  addImagesGenerationsRoute(api, context);
  addModelRoutes(api, context);
  addWebhookRoutes(api, context);
  addHealthRoute(api, context);
  addStatusRoute(api, context);
  addFalRoutes(api, context);
  addFalProxyRoute(api);
  addReplicateRoutes(api, context);
  addDocsRoutes(api);
  addPageRoutes(api);
  if (context.adminAccess !== 'none') addAdminRoutes(api, context);
  return api;
}

function wrongMethod(methods: readonly string[]): ApiError {
  const allowed = methods.join(', ');
  const message = `This path takes ${allowed}.`;
  return new ApiError({ status: 405, code: 'method_not_allowed', message, headers: { Allow: allowed } });
}

function noSuchRoute(): ApiError {
  return new ApiError({ status: 404, code: 'route_not_found', message: 'There is nothing here; /docs says what is.' });
}
