import { randomUUID } from 'node:crypto';
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import type { Context } from 'hono';
import type { ApiEnv } from './api-context.ts';
import { type ApiError, toApiError } from './api-error.ts';

/** The body of every answer that is an error. `message` stands twice: people read the first, OpenAI's clients the second. */
export interface ErrorBody {
  message: string;
  error: { message: string; type: string; code: string; param: string | null };
}

export function errorBody({ type, code, message, param }: ApiError): ErrorBody {
  return { message, error: { message, type, code, param: param ?? null } };
}

export function errorResponse(c: Context<ApiEnv>, error: ApiError): Response {
  return c.json(errorBody(error), error.status, { ...error.headers });
}

/** The one place where errors become answers; those that are our fault are logged. */
export function handleError(log: Logger) {
  return (error: Error, c: Context<ApiEnv>): Response => {
    const errorId = randomUUID();
    const answer = toApiError(error, errorId);
    if (answer.status === 500) {
      c.set('errorId', errorId);
      log.error({ error_id: errorId, error: loggableError(error) }, 'a request failed');
    } else if (answer.status >= 500) log.warn({ code: answer.code }, 'a request was turned away');
    return errorResponse(c, answer);
  };
}

/** Without the properties of an error: ioredis keeps the command in one, and with it somebody's prompt. */
export function loggableError(error: unknown): unknown {
  if (!(error instanceof Error)) return { type: typeof error };
  const { name, message, stack, cause } = error;
  const where = DarkroomError.isInstance(error) ? { code: error.code, op: error.op } : {};
  return { type: name, message, stack, ...where, ...(cause === undefined ? {} : { cause: loggableError(cause) }) };
}
