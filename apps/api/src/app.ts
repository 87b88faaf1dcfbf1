import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { addAdminBoard } from './admin/admin-board.ts';
import { adminModelRoutes } from './admin/admin-models.ts';
import { adminRequestRoutes } from './admin/admin-requests.ts';
import { adminWorkerRoutes } from './admin/admin-workers.ts';
import { authenticate } from './auth/authenticate.ts';
import { checkHost } from './auth/host-check.ts';
import { type ApiContext, type ApiDeps, createContext } from './context.ts';
import { falRoutes } from './fal/fal.ts';
import { addFalProxyRoute, falPath } from './fal/fal-proxy.ts';
import { falError } from './fal/fal-schema.ts';
import { generateRoute } from './generate/generate.ts';
import type { ApiEnv } from './http/api-env.ts';
import { ApiError } from './http/api-error.ts';
import { addRoute, type Api, type Route } from './http/api-route.ts';
import { cors } from './http/cors.ts';
import { errorResponse, handleError, showErrorsAs } from './http/error-response.ts';
import { measureRequests, requestLog, traceRequests } from './http/observe-requests.ts';
import { chatCompletionsRoute } from './openai/text/chat-completions.ts';
import { completionsRoute } from './openai/text/completions.ts';
import { imagesGenerationsRoute } from './openai/images/images-generations.ts';
import { imagesEditsRoute, imagesVariationsRoute } from './openai/images/images-edits.ts';
import { addDocsRoutes } from './pages/docs.ts';
import { addAdminPage, addPageRoutes } from './pages/page.ts';
import { replicateRoutes } from './replicate/replicate.ts';
import { replicateError } from './replicate/replicate-schema.ts';
import { responsesRoutes } from './responses/responses.ts';
import { eventsRoute } from './v1/events.ts';
import { healthRoute } from './v1/health.ts';
import { imageRoute } from './v1/image.ts';
import { inputRoute } from './v1/input.ts';
import { modelRoute, modelsRoute } from './v1/models.ts';
import { predictRoute } from './v1/predict.ts';
import { cancelRoute, requestRoute } from './v1/request.ts';
import { statusRoute } from './v1/status.ts';
import { deliveriesRoute, resendRoute, webhookSecretRoute } from './v1/webhook-deliveries.ts';

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
  api.use(authenticate(context));
  api.use(methodNotAllowed({ app: api, onMethodNotAllowed: (c, methods) => errorResponse(c, wrongMethod(methods)) }));
  api.onError(handleError(context.log));
  api.notFound((c) => errorResponse(c, noSuchRoute()));
  for (const route of routesOf(context)) addRoute(api, context, route);
  addFalProxyRoute(api);
  addDocsRoutes(api);
  addPageRoutes(api);
  // `authenticate` lets nobody else come here.
  if (context.adminAccess !== 'none') {
    addAdminPage(api);
    addAdminBoard(api, context);
  }
  return api;
}

function routesOf(context: ApiContext): readonly Route[] {
  return [
    predictRoute,
    requestRoute,
    cancelRoute,
    eventsRoute,
    imageRoute,
    inputRoute,
    imagesGenerationsRoute,
    imagesEditsRoute,
    imagesVariationsRoute,
    generateRoute,
    chatCompletionsRoute,
    completionsRoute,
    ...responsesRoutes,
    modelsRoute,
    modelRoute,
    deliveriesRoute,
    resendRoute,
    webhookSecretRoute,
    healthRoute(context),
    statusRoute(context),
    ...falRoutes,
    ...replicateRoutes,
    ...(context.adminAccess === 'none' ? [] : [...adminModelRoutes, ...adminWorkerRoutes, ...adminRequestRoutes]),
  ];
}

function wrongMethod(methods: readonly string[]): ApiError {
  const allowed = methods.join(', ');
  return new ApiError(405, 'method_not_allowed', `This path takes ${allowed}.`, { headers: { Allow: allowed } });
}

function noSuchRoute(): ApiError {
  return new ApiError(404, 'route_not_found', 'There is nothing here; /docs says what is.');
}
