import { OpenAPIHono } from '@hono/zod-openapi';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { addAdminBoard } from './admin/admin-board.ts';
import { adminKeyRoutes } from './admin/admin-keys.ts';
import { adminModelRoutes } from './admin/admin-models.ts';
import { adminRequestRoutes } from './admin/admin-requests.ts';
import { adminWorkerRoutes } from './admin/admin-workers.ts';
import { authenticate } from './auth/authenticate.ts';
import { guardOpenServer } from './auth/guard-open-server.ts';
import { type ApiContext, type ApiDeps, createContext } from './context/context.ts';
import { falRoutes } from './fal/fal.ts';
import { addFalProxyRoute, falPath } from './fal/fal-proxy.ts';
import { falError } from './fal/fal-schema.ts';
import { generateRoute } from './generate/generate.ts';
import type { ApiEnv, Api } from './http/api-env.ts';
import { ApiError } from './http/api-error.ts';
import { addRoute, type Route } from './openapi/api-route.ts';
import { closestRoute } from './http/closest-route.ts';
import { cors } from './http/cors.ts';
import { errorResponse, handleError, showErrorsAs } from './http/error-response.ts';
import { findPublicUrl } from './http/public-url.ts';
import { observeRequests } from './http/observe-requests.ts';
import { chatCompletionsRoute } from './openai/text/chat-completions.ts';
import { completionsRoute } from './openai/text/completions.ts';
import { imagesGenerationsRoute } from './openai/images/images-generations.ts';
import { imagesEditsRoute, imagesVariationsRoute } from './openai/images/images-edits.ts';
import { addDocsRoutes } from './pages/docs.ts';
import { addAdminPage, addPageRoutes } from './pages/page.ts';
import { replicateRoutes } from './replicate/replicate.ts';
import { replicateFileRoutes } from './replicate/replicate-files.ts';
import { replicateError } from './replicate/replicate-schema.ts';
import { responsesRoutes } from './responses/responses.ts';
import { eventsRoute } from './v1/events.ts';
import { healthRoute } from './v1/health.ts';
import { imageRoute } from './v1/image.ts';
import { inputRoute } from './v1/input.ts';
import { listRoute } from './v1/list.ts';
import { modelRoute, modelsRoute } from './v1/models.ts';
import { pinRoutes } from './v1/pin.ts';
import { predictRoute } from './v1/predict.ts';
import { cancelRoute, requestRoute } from './v1/request.ts';
import { statusRoute } from './v1/status.ts';
import { zipRoute } from './v1/zip.ts';
import { deliveriesRoute, resendRoute, webhookSecretRoute } from './v1/webhook-deliveries.ts';

/** Creates the API over one store. Stateless: any number of replicas can run side by side. */
export function createApp(deps: ApiDeps): Api {
  const context = createContext(deps);
  const api: Api = new OpenAPIHono<ApiEnv>({ getPath: falPath });
  api.use(findPublicUrl(context.config));
  api.use(observeRequests(context));
  const { corsOrigins } = context.config;
  if (corsOrigins !== undefined) api.use(cors(corsOrigins));
  api.use('/fal/*', showErrorsAs(falError));
  api.use('/replicate/*', showErrorsAs(replicateError));
  api.use(guardOpenServer(context.apiKeys, context.config));
  api.use(authenticate(context));
  const routes = routesOf(context);
  api.use(
    methodNotAllowed({
      app: api,
      onMethodNotAllowed: (c, methods) => errorResponse(c, wrongMethod(methodsOf(routes, c.req.path) ?? methods)),
    }),
  );
  api.onError(handleError(context.log));
  const paths = routes.map(({ path }) => path);
  const isOff = (path: string): boolean => context.adminAccess === 'none' && /^\/admin(?:\/|$)/.test(path);
  api.notFound((c) =>
    errorResponse(c, isOff(c.req.path) ? adminIsOff() : noSuchRoute(closestRoute(c.req.path, paths))),
  );
  for (const route of routes) addRoute(api, context, route);
  addFalProxyRoute(api);
  addDocsRoutes(api);
  addPageRoutes(api);
  // `authenticate` restricts these paths to admins.
  if (context.adminAccess !== 'none') {
    addAdminPage(api);
    addAdminBoard(api, context);
  }
  return api;
}

function routesOf(context: ApiContext): readonly Route[] {
  return [
    predictRoute,
    listRoute,
    zipRoute,
    requestRoute,
    cancelRoute,
    ...pinRoutes,
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
    ...replicateFileRoutes,
    ...(context.adminAccess === 'none' ? [] : adminRoutes),
  ];
}

const adminRoutes = [...adminModelRoutes, ...adminWorkerRoutes, ...adminRequestRoutes, ...adminKeyRoutes];

/** Returns the methods of a path that is a route itself, although it also matches one with a parameter. */
function methodsOf(routes: readonly Route[], path: string): string[] | undefined {
  const found = routes.filter((route) => route.path === path);
  return found.length === 0
    ? undefined
    : found.flatMap(({ method }) => (method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()]));
}

function wrongMethod(methods: readonly string[]): ApiError {
  const allowed = methods.join(', ');
  return new ApiError(405, 'method_not_allowed', `The method is not allowed on this path, expected ${allowed}.`, {
    headers: { Allow: allowed },
  });
}

function noSuchRoute(closest: string | undefined): ApiError {
  const hint = closest === undefined ? '/docs lists all paths.' : `did you mean ${closest}?`;
  return new ApiError(404, 'route_not_found', `There is no route at this path; ${hint}`);
}

function adminIsOff(): ApiError {
  const message = 'The admin routes are off, expected ADMIN_KEYS to be set (docs/admin.md).';
  return new ApiError(404, 'route_not_found', message);
}
