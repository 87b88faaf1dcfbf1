import { createRoute, z } from '@hono/zod-openapi';
import { missingApiKey } from '../auth/api-keys.ts';
import { crossSite, wrongHost } from '../auth/guard-open-server.ts';
import type { ApiContext } from '../context/context.ts';
import { storeUnavailable } from '../server/store-guard.ts';
import type { Api, ApiCall } from '../http/api-env.ts';
import { type ApiError, modelNotFound, requestGone, requestNotFound, toApiError } from '../http/api-error.ts';
import { errorBody, errorSchema } from '../http/error-response.ts';
import type { Tag } from './tags.ts';

/** OpenAPI description of a route. Path parameters that `params` omits are any string. */
export type RouteDocument = Omit<Parameters<typeof createRoute>[0], 'tags'> & {
  /** Begins with a verb. Generators name functions after it, so it never changes. */
  operationId: string;
  tag: Tag;
  params?: Readonly<Record<string, z.ZodType>>;
};

/**
 * Handler of a route. Handlers validate their input themselves, with the schemas of the document: zod-openapi's
 * validators do not pass the received value to the error message.
 */
export type Handle = (c: ApiCall, context: ApiContext) => Response | Promise<Response>;
export type Route = RouteDocument & { handle: Handle };

/** Joins the descriptions of routes with their handlers. */
export function routesOf<Name extends string>(
  documents: Readonly<Record<Name, RouteDocument>>,
  handlers: Readonly<Record<Name, Handle>>,
): Route[] {
  return (Object.keys(documents) as Name[]).map((name) => ({ ...documents[name], handle: handlers[name] }));
}

export function addRoute(api: Api, context: ApiContext, { handle, tag, params = {}, ...config }: Route): void {
  const names = [...config.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, params[name!] ?? z.string()]);
  const request =
    names.length === 0 ? config.request : { ...config.request, params: z.object(Object.fromEntries(names)) };
  const route = createRoute({ ...config, tags: [tag], ...(request && { request }) });
  api.openAPIRegistry.registerPath(route);
  api.on(route.method.toUpperCase(), route.getRoutingPath(), (c) => handle(c, context));
}

export const exampleId = 'emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe';

type HeaderDocuments = Record<string, { description: string; schema: { type: 'string' | 'integer' } }>;

/** Describes a JSON answer. */
export function jsonAnswer(description: string, schema: z.ZodType, headers?: HeaderDocuments) {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema } } };
}

/** Describes an error answer, with an example. */
export function describeErrorAnswer(description: string, error: ApiError) {
  return {
    description,
    content: { 'application/json': { schema: errorSchema, example: errorBody(error) } },
    ...('Retry-After' in error.headers ? { headers: retryAfterHeader } : {}),
  };
}

export const retryAfterHeader = {
  'Retry-After': { description: 'Seconds to wait before asking again.', schema: { type: 'integer' as const } },
};

/** Errors of every route that reads or writes Redis. */
export const commonErrors = {
  401: describeErrorAnswer(
    'No key, or an unknown one; servers without keys accept every client. After too many wrong keys from one address: 429 with `Retry-After`.',
    missingApiKey(),
  ),
  403: describeErrorAnswer(
    'Sent by a page of another origin (only on servers without keys).',
    crossSite('https://example.org'),
  ),
  421: describeErrorAnswer(
    'The Host header is not a name of this server (only on servers without keys).',
    wrongHost('example.org'),
  ),
  500: jsonAnswer('Internal server error; the log has the details under the same id.', errorSchema),
  503: describeErrorAnswer('Redis cannot be reached.', toApiError(storeUnavailable(), '')),
};

/** Errors of every route of one request. */
export const requestErrors = {
  ...commonErrors,
  404: describeErrorAnswer('No such request.', requestNotFound(exampleId)),
  410: describeErrorAnswer('The request has ended and its results have expired.', requestGone(exampleId)),
};

export const exampleNoModel = modelNotFound('sdxl', [{ id: 'emoji-sd' }]);
export const noSuchModel = describeErrorAnswer('No such model.', exampleNoModel);
