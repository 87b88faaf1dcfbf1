/** The fields of a {@link ClientError}. */
export type ClientErrorOptions = Pick<ClientError, 'code' | 'message'> &
  Partial<Pick<ClientError, 'status' | 'param' | 'retryAfterS' | 'cause'>>;

/**
 * Any error except an abort, which throws the signal's reason instead.
 *
 * | `status` | `code` | |
 * | --- | --- | --- |
 * | 400 | `invalid_value`, `missing_field`, … | a field is invalid: `param` |
 * | 404 | `request_not_found`, `model_not_found`, `image_not_found` | never existed |
 * | 409 | `request_ended`, `image_not_ready` | too late to cancel, too early to fetch |
 * | 410 | `request_gone` | expired |
 * | 503 | `overloaded`, `unavailable`, … | retry after `retryAfterS` |
 * | other | the API's, or `http_<status>` if the response is not from the API | |
 * | undefined | `connection_failed` | no response, or an incomplete one |
 * | undefined | `timeout` | no response within `timeoutMs` |
 * | 200 | `invalid_answer` | not from the API: usually a proxy's page |
 *
 * @example
 *   try {
 *     await client.submit({ prompt: 'a red apple', n: 1000 });
 *   } catch (error) {
 *     if (!(error instanceof ClientError)) throw error;
 *     console.log(error.status, error.code, error.param); // 400 invalid_value n
 *   }
 */
export class ClientError extends Error {
  /** The HTTP status; undefined if no complete response arrived. */
  readonly status: number | undefined;
  /** A stable code for programs, one per reason. */
  readonly code: string;
  /** The invalid field. */
  readonly param: string | undefined;
  /** Seconds to wait before the next try. */
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

/** Returns true if the API may have received the request: there was no response, or a proxy lost it. */
export function isResponseLost(error: unknown): error is ClientError {
  return error instanceof ClientError && [undefined, 502, 504].includes(error.status);
}

/** Returns true if a GET may succeed when retried. Proxies return 502 and 504 while the API restarts. */
export function isTemporary(error: unknown): error is ClientError {
  return error instanceof ClientError && [undefined, 429, 502, 503, 504].includes(error.status);
}

/** Reads the error from a response that is not 2xx. `what` describes the request, such as `GET /v1/predict/x`. */
export async function errorOfResponse(response: Response, what: string): Promise<ClientError> {
  const { status } = response;
  const detail = detailOf(await response.text().catch(() => ''));
  return new ClientError({
    status,
    code: textOf(detail['code']) ?? `http_${status}`,
    message: textOf(detail['message']) ?? `${what} returned status ${status}`,
    param: textOf(detail['param']),
    retryAfterS: retryAfterOf(response),
  });
}

/** Returns `error` from the API's error body; empty for any other body. */
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

/** Returns the seconds of `Retry-After`, a number or a date; undefined if it is absent or invalid. */
export function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('retry-after');
  if (text === null || text.trim() === '') return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds);
  const untilMs = Date.parse(text) - Date.now();
  return Number.isNaN(untilMs) ? undefined : Math.max(0, Math.ceil(untilMs / 1000));
}
