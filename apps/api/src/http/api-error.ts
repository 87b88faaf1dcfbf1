import {
  cutText,
  DarkroomError,
  describeValue,
  type ErrorCode,
  type FieldProblem,
  invalidValue,
  maxListedProblems,
} from '@darkroom/core';
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
  /** Error type; by default derived from the status. */
  type?: ErrorType;
  param?: string | undefined;
  /** All problems of the fields; the message lists them in one line. */
  problems?: readonly FieldProblem[];
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/** Limits on error answers, which may repeat the client's input several times. UTF-16 units. */
const maxMessageLength = 3000;
const maxProblemLength = 400;
const maxFieldLength = 200;
/** One more than are listed by name, for the entry that counts the remaining ones. */
const maxProblems = maxListedProblems + 1;

function cutTo(length: number, text: string): string {
  return text.length <= length ? text : `${text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

function cutProblem(problem: FieldProblem): FieldProblem {
  const { field, message } = problem;
  return {
    ...problem,
    field: field === undefined ? undefined : cutTo(maxFieldLength, field),
    message: cutTo(maxProblemLength, message),
  };
}

/**
 * Error answer of the API. `code` is for programs: stable, one per reason. `message` is for people; it may quote the
 * client's input, so it is never logged.
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
    super(cutTo(maxMessageLength, message), { cause });
    this.status = status;
    this.code = code;
    this.type = type;
    this.param = param === undefined ? undefined : cutTo(maxFieldLength, param);
    this.problems = problems.slice(0, maxProblems).map(cutProblem);
    this.headers = headers;
  }
}

/** Formats an error in the shape of a compat API: its body, and status and headers where they differ. */
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

/** Default `Retry-After`, s, if no better estimate exists. */
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

/** Converts any error into an ApiError. Unexpected errors become a 500 that shows only `errorId`. */
export function toApiError(cause: unknown, errorId: string): ApiError {
  if (cause instanceof ApiError) return cause;
  const status = DarkroomError.isInstance(cause) ? statusOfCode[cause.code] : undefined;
  if (DarkroomError.isInstance(cause) && status !== undefined) {
    const { code, message } = cause;
    return new ApiError(status, code, message, { headers: status === 503 ? retryLater : {}, cause });
  }
  return new ApiError(500, 'internal', `Internal server error. The server's log has the details under ${errorId}.`, {
    cause,
  });
}

export function invalidFields(problems: readonly FieldProblem[]): ApiError {
  const [{ code, field: param } = { code: 'invalid_body', field: undefined }] = problems;
  const listed = problems.slice(0, maxProblems).map((problem) => cutProblem(problem).message);
  return new ApiError(400, code, listed.join('; '), { param, problems });
}

/** Returns a 400 for a value that is wrong or missing. */
export function invalidField(field: string, value: unknown, expected: string): ApiError {
  return invalidFields([invalidValue(field, value, expected)]);
}

/** Parses the value of a header or query parameter with a schema. Throws 400 if it does not match. */
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

/** Returns a 503 with `Retry-After` for something that is temporarily unavailable. */
export function temporarilyUnavailable(code: string, message: string, param?: 'model'): ApiError {
  return new ApiError(503, code, message, { param, headers: retryLater });
}

/** Returns a 429 for a key that has reached a limit. */
export function tooMany(code: string, message: string, headers = { 'Retry-After': '1' }): ApiError {
  return new ApiError(429, code, message, { headers });
}

export function modelNotFound(model: string, known: readonly { id: string }[]): ApiError {
  const names = known.map(({ id }) => id).join(', ');
  const message = `model ${describeValue(model)} was not found, expected one of ${names}`;
  return new ApiError(404, 'model_not_found', message, { param: 'model' });
}

/** OpenAI-compatible routes by kind of model. */
const routesOfKind: Readonly<Record<string, string>> = {
  image: '/v1/images/generations',
  text: '/v1/chat/completions',
};

/** Returns a 404 for a model whose kind the route does not serve. */
export function modelOfOtherKind({ id, kind }: { id: string; kind: string }): ApiError {
  const route = routesOfKind[kind] ?? '/v1/predict';
  const message = `model ${id} has the kind ${kind}, which this route does not serve: use ${route}`;
  return new ApiError(404, 'model_not_found', message, { param: 'model' });
}

/** Returns a 404 for a route of a kind that no model has. */
export function kindNotFound(kind: string | undefined): ApiError {
  const message = `no model has the kind ${describeValue(kind)}, which this route serves`;
  return new ApiError(404, 'model_not_found', message, { param: 'model' });
}

export function overloaded(retryAfterS = retryLaterS): ApiError {
  const headers = { 'Retry-After': String(retryAfterS) };
  return new ApiError(503, 'overloaded', 'Service overloaded, try again later.', { headers });
}

export function tooManyStreams(open: number): ApiError {
  const message = `This key has ${open} open event streams on this server, which is its limit; close one.`;
  return tooMany('too_many_streams', message);
}

export function requestNotFound(id: string): ApiError {
  return new ApiError(404, 'request_not_found', `There is no request ${cutText(id)}.`);
}

export function requestGone(id: string): ApiError {
  return new ApiError(410, 'request_gone', `Request ${id} has ended and its results have expired.`);
}
