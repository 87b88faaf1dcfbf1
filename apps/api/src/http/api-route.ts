import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import { missingApiKey } from '../auth/api-keys.ts';
import { wrongHost } from '../auth/host-check.ts';
import type { ApiContext } from '../context.ts';
import { storeUnavailable } from '../server/store-guard.ts';
import type { ApiCall, ApiEnv } from './api-env.ts';
import { type ApiError, modelNotFound, requestGone, requestNotFound, toApiError } from './api-error.ts';
import { errorBody, errorSchema } from './error-response.ts';

export type Api = OpenAPIHono<ApiEnv>;

/** A route as the OpenAPI document shows it. What `params` does not say of the names in the path is any text. */
export type RouteDocument = Parameters<typeof createRoute>[0] & { params?: Readonly<Record<string, z.ZodType>> };

/**
 * Answers a route. Handlers check what comes themselves, with the schemas that the document shows: zod-openapi's own
 * validators do not tell a message which value came.
 */
export type Handle = (c: ApiCall, context: ApiContext) => Response | Promise<Response>;
export type Route = RouteDocument & { handle: Handle };

/** Routes that are described in one place and answered in another. */
export function routesOf<Name extends string>(
  documents: Readonly<Record<Name, RouteDocument>>,
  handlers: Readonly<Record<Name, Handle>>,
): Route[] {
  return (Object.keys(documents) as Name[]).map((name) => ({ ...documents[name], handle: handlers[name] }));
}

export function addRoute(api: Api, context: ApiContext, { handle, params = {}, ...config }: Route): void {
  const names = [...config.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, params[name!] ?? z.string()]);
  const request =
    names.length === 0 ? config.request : { ...config.request, params: z.object(Object.fromEntries(names)) };
  const route = createRoute({ ...config, ...(request && { request }) });
  api.openAPIRegistry.registerPath(route);
  api.on(route.method.toUpperCase(), route.getRoutingPath(), (c) => handle(c, context));
}

export const exampleId = 'emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe';

type HeaderDocuments = Record<string, { description: string; schema: { type: 'string' | 'integer' } }>;

/** The description of an answer that is JSON. */
export function jsonAnswer(description: string, schema: z.ZodType, headers?: HeaderDocuments) {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema } } };
}

/** The description of an answer that is an error, with one it may give. */
export function errorAnswer(description: string, error: ApiError) {
  return {
    description,
    content: { 'application/json': { schema: errorSchema, example: errorBody(error) } },
    ...('Retry-After' in error.headers ? { headers: retryAfterHeader } : {}),
  };
}

export const retryAfterHeader = {
  'Retry-After': { description: 'Seconds to wait before asking again.', schema: { type: 'integer' as const } },
};

/** What every route that asks Redis may answer. */
export const commonErrors = {
  401: errorAnswer('No key, or none of this server; servers without keys take everybody.', missingApiKey()),
  421: errorAnswer('Not a name of this server (only where no keys are asked for).', wrongHost('example.org')),
  500: jsonAnswer('A fault on our side; the id is in the log too.', errorSchema),
  503: errorAnswer('Redis cannot be reached.', toApiError(storeUnavailable(), '')),
};

/** What every route of one request may answer. */
export const requestErrors = {
  ...commonErrors,
  404: errorAnswer('Never heard of it.', requestNotFound(exampleId)),
  410: errorAnswer('Its time is over.', requestGone(exampleId)),
};

export const exampleNoModel = modelNotFound('sdxl', [{ id: 'emoji-sd' }]);
export const noSuchModel = errorAnswer('No such model.', exampleNoModel);
