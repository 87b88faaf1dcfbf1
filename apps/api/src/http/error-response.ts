import { randomUUID } from 'node:crypto';
import type { Logger } from '@darkroom/service';
import { z } from '@hono/zod-openapi';
import type { MiddlewareHandler } from 'hono';
import type { ApiCall, ApiEnv } from './api-env.ts';
import { type ApiError, errorTypes, type ErrorView, toApiError } from './api-error.ts';

/** The body of every answer that is an error. `message` stands twice: people read the first, OpenAI's clients the second. */
export const errorSchema = z
  .strictObject({
    message: z.string(),
    error: z.strictObject({
      message: z.string(),
      type: z.enum(errorTypes),
      code: z.string().openapi({ description: 'One per reason, stable.' }),
      param: z.string().nullable().openapi({ description: 'The field that is wrong.' }),
    }),
  })
  .openapi('Error');

/** On routes that speak as another API errors do too, whoever throws them. */
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
  return c.json(body, status, { ...error.headers, ...headers });
}

/** The one place where errors become answers; those that are our fault are logged. */
export function handleError(log: Logger) {
  return (error: Error, c: ApiCall): Response => {
    const errorId = randomUUID();
    const answer = toApiError(error, errorId);
    if (answer.status === 500) {
      c.set('errorId', errorId);
      log.error({ error_id: errorId, err: error }, 'a request failed');
    } else if (answer.status >= 500) log.warn({ code: answer.code }, 'a request was turned away');
    return errorResponse(c, answer);
  };
}
