import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { maxSeed, systemClock } from '@darkroom/core';
import { Metrics } from '@darkroom/service';
import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import type { ApiContext, ApiDeps, ApiEnv } from './api-context.ts';
import { ApiError } from './api-error.ts';
import { createApiMetrics } from './api-metrics.ts';
import type { Api } from './api-route.ts';
import { errorResponse, handleError, showErrorsAs } from './error-response.ts';
import { measureRequests } from './measure-requests.ts';
import { createModelCatalog } from './model-catalog.ts';
import { adminAccessOf } from './admin-access.ts';
import { authenticate } from './authenticate.ts';
import { requestLog } from './request-log.ts';
import { addAdminRoutes } from './routes/admin.ts';
import { addCancelRoute } from './routes/cancel.ts';
import { addDocsRoutes } from './routes/docs.ts';
import { addEventsRoute } from './routes/events.ts';
import { addFalRoutes, falError, falPath } from './routes/fal.ts';
import { addHealthRoute } from './routes/health.ts';
import { addImageRoute } from './routes/image.ts';
import { addImagesGenerationsRoute } from './routes/images-generations.ts';
import { addModelRoutes } from './routes/models.ts';
import { addPageRoutes } from './routes/page.ts';
import { addPredictRoute } from './routes/predict.ts';
import { addReplicateRoutes, replicateError } from './routes/replicate.ts';
import { addRequestRoute } from './routes/request.ts';
import { cors } from './cors.ts';
import { everyInterval } from './every-interval.ts';
import { createEndEstimator } from './end-estimator.ts';
import { createRateLimit } from './limit-rate.ts';
import { addStatusRoute } from './routes/status.ts';
import { addWebhookRoutes } from './routes/webhook-deliveries.ts';
import { createStoreGuard } from './store-guard.ts';
import { traceRequests } from './trace-requests.ts';

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
