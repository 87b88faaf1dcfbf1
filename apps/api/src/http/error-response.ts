import { randomUUID } from 'node:crypto';
import type { Logger } from '@darkroom/service';
import { z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { ApiCall, ApiEnv } from './api-env.ts';
import { type ApiError, errorTypes, type ErrorView, toApiError } from './api-error.ts';

/**
 * Body of every error answer. `message` appears twice: at the top level for people, in `error` for OpenAI's clients.
 */
export const errorSchema = z
  .strictObject({
    message: z.string(),
    error: z.strictObject({
      message: z.string(),
      type: z.enum(errorTypes),
      code: z.string().openapi({ description: 'Stable, one per reason.' }),
      param: z.string().nullable().openapi({ description: 'The invalid field.' }),
    }),
  })
  .openapi('Error');

/** Middleware of compat routes: formats all errors below it with `view`. */
export function showErrorsAs(view: ErrorView): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    c.set('errorView', view);
    await next();
  };
}

export function errorBody({ type, code, message, param }: ApiError): z.infer<typeof errorSchema> {
  return { message, error: { message, type, code, param: param ?? null } };
}

const ourView: ErrorView = (error) => ({ body: errorBody(error) });

export function errorResponse(c: ApiCall, error: ApiError): Response {
  const { errorView: view = ourView, requestId } = c.var;
  const { body, status = error.status, headers } = view(error, requestId);
  // An error without a stored request gets an id under which the log has it.
  const shownId = requestId ?? c.get('errorId') ?? randomUUID();
  if (requestId === undefined) c.set('errorId', shownId);
  return c.json(body, status, { 'X-Request-Id': shownId, ...error.headers, ...headers });
}

/** Returns the error handler of the app: converts every error into an answer and logs those with status 5xx. */
export function handleError(log: Logger) {
  return (error: Error, c: ApiCall): Response => {
    const errorId = randomUUID();
    const answer = toApiError(error, errorId);
    if (answer.status === 500) {
      c.set('errorId', errorId);
      log.error({ error_id: errorId, err: error }, 'request failed');
    } else if (answer.status >= 500) log.warn({ code: answer.code }, 'request rejected: service unavailable');
    return errorResponse(c, answer);
  };
}
