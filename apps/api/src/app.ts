import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { maxSeed, systemClock } from '@darkroom/core';
import { Metrics } from '@darkroom/service';
import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import type { ApiContext, ApiDeps, ApiEnv } from './context.ts';
import { ApiError } from './http/api-error.ts';
import { createApiMetrics } from './http/api-metrics.ts';
import type { Api } from './http/api-route.ts';
import { errorResponse, handleError, showErrorsAs } from './http/error-response.ts';
import { measureRequests } from './http/measure-requests.ts';
import { createModelCatalog } from './submit/model-catalog.ts';
import { adminAccessOf } from './auth/admin-access.ts';
import { authenticate } from './auth/authenticate.ts';
import { requestLog } from './http/request-log.ts';
import { addAdminRoutes } from './admin/admin.ts';
import { addCancelRoute } from './v1/cancel.ts';
import { addDocsRoutes } from './pages/docs.ts';
import { addEventsRoute } from './v1/events.ts';
import { addFalRoutes, falError, falPath } from './fal/fal.ts';
import { addHealthRoute } from './v1/health.ts';
import { addImageRoute } from './v1/image.ts';
import { addImagesGenerationsRoute } from './openai/images-generations.ts';
import { addModelRoutes } from './v1/models.ts';
import { addPageRoutes } from './pages/page.ts';
import { addPredictRoute } from './v1/predict.ts';
import { addReplicateRoutes, replicateError } from './replicate/replicate.ts';
import { addRequestRoute } from './v1/request.ts';
import { cors } from './http/cors.ts';
import { everyInterval } from './server/every-interval.ts';
import { createEndEstimator } from './follow/end-estimator.ts';
import { createRateLimit } from './auth/limit-rate.ts';
import { addStatusRoute } from './v1/status.ts';
import { addWebhookRoutes } from './v1/webhook-deliveries.ts';
import { createStoreGuard } from './server/store-guard.ts';
import { traceRequests } from './http/trace-requests.ts';

const defaultStoreWaitMs = 3000;

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
  addReplicateRoutes(api, context);
  addDocsRoutes(api);
  addPageRoutes(api);
  if (context.adminAccess !== 'none') addAdminRoutes(api, context);
  return api;
}

function createContext({ storeWaitMs = defaultStoreWaitMs, ...deps }: ApiDeps): ApiContext {
  const clock = deps.clock ?? systemClock;
  // Every open stream listens; that is no leak.
  setMaxListeners(0, deps.draining);
  const metrics = createApiMetrics(deps.metrics ?? new Metrics({ app: 'api', log: deps.log }));
  const askStore = createStoreGuard(deps.store, storeWaitMs);
  const apiKeys = deps.apiKeys ?? new Map();
  return {
    ...deps,
    clock,
    every: deps.every ?? everyInterval,
    drawSeed: deps.drawSeed ?? (() => randomInt(maxSeed + 1)),
    askStore,
    metrics,
    models: createModelCatalog(askStore, clock),
    apiKeys,
    adminAccess: adminAccessOf(apiKeys, deps.config.host),
    limitRate: createRateLimit(deps.store, askStore, metrics),
    estimateEnd: createEndEstimator(askStore, clock),
  };
}

function wrongMethod(methods: readonly string[]): ApiError {
  const allowed = methods.join(', ');
  const message = `This path takes ${allowed}.`;
  return new ApiError({ status: 405, code: 'method_not_allowed', message, headers: { Allow: allowed } });
}

function noSuchRoute(): ApiError {
  return new ApiError({ status: 404, code: 'route_not_found', message: 'There is nothing here; /docs says what is.' });
}
