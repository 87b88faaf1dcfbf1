import { ClientError } from './client-error.ts';
import { retryAfterOf } from './retry-after.ts';

/** The error in an answer that is not 2xx; reads its body. `what` such as `GET /v1/predict/x`. */
export async function errorOfResponse(response: Response, what: string): Promise<ClientError> {
  const { status } = response;
  const retryAfterS = retryAfterOf(response);
  const detail = detailOf(await response.text().catch(() => ''));
  return new ClientError({
    status,
    code: textOf(detail['code']) ?? `http_${status}`,
    message: textOf(detail['message']) ?? `${what} was answered with ${status}`,
    param: textOf(detail['param']),
    retryAfterS,
  });
}

/** `error` of the API's error body; empty for any other body. */
function detailOf(text: string): Record<string, unknown> {
  try {
    const body = JSON.parse(text) as { error?: unknown } | null;
    const detail = body?.error;
    return typeof detail === 'object' && detail !== null ? (detail as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
