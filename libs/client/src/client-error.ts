/** What a {@link ClientError} says, field by field. */
export type ClientErrorOptions = Pick<ClientError, 'code' | 'message'> &
  Partial<Pick<ClientError, 'status' | 'param' | 'retryAfterS' | 'cause'>>;

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

/** Whether the request may have arrived all the same: no answer came, or a proxy lost it. */
export function isAnswerLost(error: unknown): error is ClientError {
  return error instanceof ClientError && [undefined, 502, 504].includes(error.status);
}

/** Whether the same GET may fare better later. 502 and 504 are what a proxy says while the API behind it starts again. */
export function isPassing(error: unknown): error is ClientError {
  return error instanceof ClientError && [undefined, 429, 502, 503, 504].includes(error.status);
}

/** The error in an answer that is not 2xx; reads its body. `what` such as `GET /v1/predict/x`. */
export async function errorOfResponse(response: Response, what: string): Promise<ClientError> {
  const { status } = response;
  const detail = detailOf(await response.text().catch(() => ''));
  return new ClientError({
    status,
    code: textOf(detail['code']) ?? `http_${status}`,
    message: textOf(detail['message']) ?? `${what} was answered with ${status}`,
    param: textOf(detail['param']),
    retryAfterS: retryAfterOf(response),
  });
}

/** `error` of the API's error body; empty for any other body. */
function detailOf(text: string): Record<string, unknown> {
  try {
    const { error } = JSON.parse(text) as { error?: Record<string, unknown> | null };
    return error ?? {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Seconds of `Retry-After`, which is a number or a date; undefined without a usable one. */
export function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('retry-after');
  if (text === null || text.trim() === '') return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const untilMs = Date.parse(text) - Date.now();
  return Number.isNaN(untilMs) ? undefined : Math.max(0, Math.ceil(untilMs / 1000));
}
