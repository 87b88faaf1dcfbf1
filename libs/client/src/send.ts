import type { ClientContext } from './client-context.ts';
import { ClientError } from './client-error.ts';
import { errorOfResponse } from './error-of-response.ts';

/** One HTTP request. */
export interface SendOptions {
  method?: 'GET' | 'POST' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string;
  signal?: AbortSignal | undefined;
}

/** One try. Resolves when a 2xx answer begins; throws {@link ClientError}, or the signal's reason. */
export async function send(
  context: ClientContext,
  path: string,
  { method = 'GET', headers = {}, body, signal }: SendOptions,
): Promise<Response> {
  const { fetch, baseUrl, timeoutMs } = context;
  const what = `${method} ${path}`;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), timeoutMs);
  const signals = signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]);
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...context.headers, ...headers },
      ...(body === undefined ? {} : { body }),
      signal: signals,
    });
    if (response.ok) return response;
    throw await errorOfResponse(response, what);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ClientError) throw error;
    if (late.signal.aborted)
      throw new ClientError({ code: 'timeout', message: `${what} was not answered within ${timeoutMs} ms` });
    throw connectionFailed(what, error);
  } finally {
    clearTimeout(timer);
  }
}

/** No answer to `what`, or none that is whole. */
export function connectionFailed(what: string, cause: unknown): ClientError {
  return new ClientError({ code: 'connection_failed', message: `the connection failed: ${what}`, cause });
}
