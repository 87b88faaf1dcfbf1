import {
  cutText,
  DarkroomError,
  describeValue,
  type ErrorCode,
  type FieldProblem,
  type ModelCard,
} from '@darkroom/core';
import type { ContentfulStatusCode } from 'hono/utils/http-status';

export const errorTypes = [
  'invalid_request_error',
  'rate_limit_error',
  'service_unavailable',
  'server_error',
  'generation_error',
] as const;

export type ErrorType = (typeof errorTypes)[number];

export interface ApiErrorOptions {
  status: ContentfulStatusCode;
  /** For programs: stable, one per reason. */
  code: string;
  /** The kind of error; by default what the status says. */
  type?: ErrorType;
  /** For people; what they sent may be in it, so it is never logged. */
  message: string;
  /** The field that is wrong. */
  param?: string | undefined;
  /** All that is wrong with the fields; the message has them in one line. */
  problems?: readonly FieldProblem[];
  headers?: Readonly<Record<string, string>>;
  cause?: unknown;
}

/** An answer that is not the one the client hoped for. */
export class ApiError extends Error {
  readonly status: ContentfulStatusCode;
  readonly code: string;
  readonly type: ErrorType;
  readonly param: string | undefined;
  readonly problems: readonly FieldProblem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(options: ApiErrorOptions) {
    const { status, code, type = typeOf(status), message, param, problems = [], headers = {}, cause } = options;
    super(message, { cause });
    this.name = 'ApiError';
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

/** Seconds after which a client that was turned away may ask again. */
export const retryAfterS = 5;
const retryLater = { 'Retry-After': String(retryAfterS) };

const statusOfCode: Readonly<Partial<Record<ErrorCode, ContentfulStatusCode>>> = {
  invalid_request: 400,
  model_unsupported: 400,
  not_found: 404,
  conflict: 409,
  gone: 410,
  overloaded: 503,
  unavailable: 503,
};

/** Any error as an answer. What nobody foresaw is a 500 that shows `errorId` and nothing else. */
export function toApiError(error: unknown, errorId: string): ApiError {
  if (error instanceof ApiError) return error;
  const status = DarkroomError.isInstance(error) ? statusOfCode[error.code] : undefined;
  if (DarkroomError.isInstance(error) && status !== undefined)
    return new ApiError({
      status,
      code: error.code,
      message: error.message,
      headers: status === 503 ? retryLater : {},
      cause: error,
    });
  const message = `Something went wrong on our side. The log has it as ${errorId}.`;
  return new ApiError({ status: 500, code: 'internal', message, cause: error });
}

export function invalidFields(problems: readonly FieldProblem[]): ApiError {
  const [first] = problems;
  return new ApiError({
    status: 400,
    code: first?.code ?? 'invalid_body',
    param: first?.field,
    problems,
    message: problems.map(({ message }) => message).join('; '),
  });
}

export function modelNotFound(model: string, known: readonly { id: string }[]): ApiError {
  const names = known.map(({ id }) => id).join(', ');
  const message = `model ${describeValue(model)} is not here, expected one of ${names}`;
  return new ApiError({ status: 404, code: 'model_not_found', param: 'model', message });
}

/** No worker has ever brought a model: a matter of time on a system that has just been started. */
export function noModels(): ApiError {
  const message = 'No worker has brought a model yet, try again later.';
  return new ApiError({ status: 503, code: 'no_models', message, headers: retryLater });
}

/** A worker of a newer version has brought it. */
export function kindUnknown({ id, kind }: ModelCard): ApiError {
  const message = `model ${id} is of the kind ${describeValue(kind)}, which this server does not know.`;
  return new ApiError({ status: 503, code: 'kind_unknown', param: 'model', message, headers: retryLater });
}

export function modelUnserved(model: string): ApiError {
  const message = `No worker serves ${model} right now, try again later.`;
  return new ApiError({ status: 503, code: 'model_unserved', param: 'model', message, headers: retryLater });
}

export function overloaded(): ApiError {
  const message = 'Service overloaded, try again later.';
  return new ApiError({ status: 503, code: 'overloaded', message, headers: retryLater });
}

/** The owner of a key has as many queued and running as it may. */
export function tooManyOpen(open: number): ApiError {
  const message = `This key has ${open} open requests, which is all it may have at once; wait for one to end.`;
  return new ApiError({ status: 429, code: 'too_many_open_requests', message, headers: { 'Retry-After': '1' } });
}

export interface ByteFigures {
  /** Of this request. */
  bytes: number;
  limit: number;
}

/** It alone could keep more bytes than one request may. */
export function tooHeavy({ field, bytes, limit }: ByteFigures & { field: string }): ApiError {
  const message = `${field} lets this request keep up to ${bytes} bytes, expected less of it: a request may keep ${limit}`;
  return invalidFields([{ field, code: 'invalid_value', message }]);
}

/** With what is kept of the owner's others it could keep more bytes than all of them may. */
export function tooManyBytes({ bytes, kept, limit }: ByteFigures & { kept: number }): ApiError {
  const message = `This request may keep up to ${bytes} bytes beside the ${kept} of your others, and all of them may keep ${limit}; wait for results to expire.`;
  return new ApiError({ status: 429, code: 'too_many_bytes', message, headers: retryLater });
}

/** The owner of a key has as many open event streams as it may. */
export function tooManyStreams(open: number): ApiError {
  const message = `This key has ${open} open event streams here, which is all it may have at once; close one.`;
  return new ApiError({ status: 429, code: 'too_many_streams', message, headers: { 'Retry-After': '1' } });
}

export function requestNotFound(id: string): ApiError {
  return new ApiError({ status: 404, code: 'request_not_found', message: `There is no request ${cutText(id)}.` });
}

export function requestGone(id: string): ApiError {
  const message = `Request ${id} is over, and its results are no longer kept.`;
  return new ApiError({ status: 410, code: 'request_gone', message });
}
