import { cutText, DarkroomError, describeValue, type ErrorCode, type FieldProblem, invalidValue } from '@darkroom/core';
import type { z } from '@hono/zod-openapi';
import type { ContentfulStatusCode } from 'hono/utils/http-status';

export const errorTypes = [
  'invalid_request_error',
  'rate_limit_error',
  'service_unavailable',
  'server_error',
  'generation_error',
] as const;
type ErrorType = (typeof errorTypes)[number];

export interface ApiErrorOptions {
  /** The kind of error; by default what the status says. */
  type?: ErrorType;
  param?: string | undefined;
  /** All that is wrong with the fields; the message has them in one line. */
  problems?: readonly FieldProblem[];
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/**
 * An answer that is not the one the client hoped for. `code` is for programs: stable, one per reason. `message` is for
 * people; what they sent may be in it, so it is never logged.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: ContentfulStatusCode;
  readonly code: string;
  readonly type: ErrorType;
  readonly param: string | undefined;
  readonly problems: readonly FieldProblem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ContentfulStatusCode, code: string, message: string, options: ApiErrorOptions = {}) {
    const { type = typeOf(status), param, problems = [], headers = {}, cause } = options;
    super(message, { cause });
    this.status = status;
    this.code = code;
    this.type = type;
    this.param = param;
    this.problems = problems;
    this.headers = headers;
  }
}

/** The body of an error in the shape of another API, with the status and headers where those differ too. */
export type ErrorView = (
  error: ApiError,
  requestId: string | undefined,
) => {
  body: Readonly<Record<string, unknown>>;
  status?: ApiError['status'];
  headers?: Readonly<Record<string, string>>;
};

function typeOf(status: number): ErrorType {
  if (status === 429) return 'rate_limit_error';
  if (status < 500) return 'invalid_request_error';
  return status === 503 ? 'service_unavailable' : 'server_error';
}

/** In how many seconds a client that was turned away may ask again, where nobody knows better. */
const retryLaterS = 5;
export const retryLater = { 'Retry-After': String(retryLaterS) };

const statusOfCode: Readonly<Partial<Record<ErrorCode, ContentfulStatusCode>>> = {
  invalid_request: 400,
  content_policy_violation: 400,
  model_unsupported: 400,
  not_found: 404,
  conflict: 409,
  gone: 410,
  overloaded: 503,
  unavailable: 503,
};

/** Any error as an answer. What nobody foresaw is a 500 that shows `errorId` and nothing else. */
export function toApiError(cause: unknown, errorId: string): ApiError {
  if (cause instanceof ApiError) return cause;
  const status = DarkroomError.isInstance(cause) ? statusOfCode[cause.code] : undefined;
  if (DarkroomError.isInstance(cause) && status !== undefined) {
    const { code, message } = cause;
    return new ApiError(status, code, message, { headers: status === 503 ? retryLater : {}, cause });
  }
  return new ApiError(500, 'internal', `Something went wrong on our side. The log has it as ${errorId}.`, { cause });
}

export function invalidFields(problems: readonly FieldProblem[]): ApiError {
  const [{ code, field: param } = { code: 'invalid_body', field: undefined }] = problems;
  return new ApiError(400, code, problems.map(({ message }) => message).join('; '), { param, problems });
}

/** For a value that is not what was expected, or missing where there must be one. */
export function invalidField(field: string, value: unknown, expected: string): ApiError {
  return invalidFields([invalidValue(field, value, expected)]);
}

/** What a schema makes of the value of a header or of the query. Throws 400 for what it does not take. */
export function checkField<Schema extends z.ZodType>(
  schema: Schema,
  field: string,
  value: unknown,
  expected: string,
): z.infer<Schema> {
  const { success, data } = schema.safeParse(value);
  if (!success) throw invalidField(field, value, expected);
  return data;
}

/** For what is not there right now, and may be soon. */
export function notNow(code: string, message: string, param?: 'model'): ApiError {
  return new ApiError(503, code, message, { param, headers: retryLater });
}

/** For a key that has as much as it may. */
export function tooMany(code: string, message: string, headers = { 'Retry-After': '1' }): ApiError {
  return new ApiError(429, code, message, { headers });
}

export function modelNotFound(model: string, known: readonly { id: string }[]): ApiError {
  const names = known.map(({ id }) => id).join(', ');
  const message = `model ${describeValue(model)} is not here, expected one of ${names}`;
  return new ApiError(404, 'model_not_found', message, { param: 'model' });
}

/** For a route whose kind of work no model here does. */
export function kindNotFound(kind: string | undefined): ApiError {
  const message = `no model here is of the kind ${describeValue(kind)}, which this route is for`;
  return new ApiError(404, 'model_not_found', message, { param: 'model' });
}

export function overloaded(retryAfterS = retryLaterS): ApiError {
  const headers = { 'Retry-After': String(retryAfterS) };
  return new ApiError(503, 'overloaded', 'Service overloaded, try again later.', { headers });
}

export function tooManyStreams(open: number): ApiError {
  const message = `This key has ${open} open event streams here, which is all it may have at once; close one.`;
  return tooMany('too_many_streams', message);
}

export function requestNotFound(id: string): ApiError {
  return new ApiError(404, 'request_not_found', `There is no request ${cutText(id)}.`);
}

export function requestGone(id: string): ApiError {
  return new ApiError(410, 'request_gone', `Request ${id} is over, and its results are no longer kept.`);
}
