/** What a {@link ClientError} says, field by field. */
export interface ClientErrorOptions {
  status?: number | undefined;
  code: string;
  message: string;
  param?: string | undefined;
  retryAfterS?: number | undefined;
  cause?: unknown;
}

/**
 * Whatever went wrong, except an abort: that throws the signal's reason.
 *
 * | `status` | `code` | |
 * | --- | --- | --- |
 * | 400 | `invalid_value`, `missing_field`, … | a field is wrong: `param` |
 * | 404 | `request_not_found`, `model_not_found`, `image_not_found` | never heard of it |
 * | 409 | `request_ended`, `image_not_ready` | too late to cancel, too early to fetch |
 * | 410 | `request_gone` | its time is over |
 * | 503 | `overloaded`, `unavailable`, … | come back after `retryAfterS` |
 * | other | the API's, or `http_<status>` for an answer that is not the API's | |
 * | undefined | `connection_failed` | no answer, or none that is whole |
 * | undefined | `timeout` | no answer in time |
 * | 200 | `invalid_answer` | not the API: a proxy's page, most likely |
 */
export class ClientError extends Error {
  /** The HTTP status; undefined when no whole answer came. */
  readonly status: number | undefined;
  /** For programs: one per reason, stable. */
  readonly code: string;
  /** The field that is wrong. */
  readonly param: string | undefined;
  /** Seconds after which asking again makes sense. */
  readonly retryAfterS: number | undefined;

  constructor({ status, code, message, param, retryAfterS, cause }: ClientErrorOptions) {
    super(message, { cause });
    this.name = 'ClientError';
    this.status = status;
    this.code = code;
    this.param = param;
    this.retryAfterS = retryAfterS;
  }
}

/** 502 and 504 are what a proxy says while the API behind it starts again. */
const passingStatuses: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Whether the request may have arrived all the same: no answer came, or a proxy lost it. */
export function isAnswerLost(error: unknown): error is ClientError {
  return error instanceof ClientError && [undefined, 502, 504].includes(error.status);
}

/** Whether the same GET may fare better later. */
export function isPassing(error: unknown): error is ClientError {
  if (!(error instanceof ClientError)) return false;
  return error.status === undefined || passingStatuses.has(error.status);
}
