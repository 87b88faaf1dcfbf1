/** Sends single requests, reads responses, and retries. */
import { ClientError, errorOfResponse, isTemporary, retryAfterOf } from './client-error.ts';
import type { Call } from './options.ts';

const firstBackOffMs = 250;
const maxBackOffMs = 15_000;
/** Maximum of setTimeout; a longer timer would fire immediately. */
const maxTimerMs = 2 ** 31 - 1;

/** Returns a request's path below the client's `baseUrl`. */
export function requestPath(id: string): string {
  return `/v1/predict/${encodeURIComponent(id)}`;
}

export interface SendOptions {
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string | FormData;
  /** Milliseconds that the server was asked to delay its response. */
  responseDelayMs?: number;
}

/** Joins URL and path. Behind a proxy, `baseUrl` may have a path; paths from the server may already begin with it. */
function urlBelow(baseUrl: string, path: string): string {
  const origin = /^[a-z]+:\/\/[^/]+/i.exec(baseUrl)?.[0] ?? '';
  const prefix = baseUrl.slice(origin.length);
  return prefix !== '' && path.startsWith(`${prefix}/`) ? `${origin}${path}` : `${baseUrl}${path}`;
}

/** Sends one request. Resolves when a 2xx response begins; throws {@link ClientError}, or the signal's reason. */
export async function send(
  call: Call,
  path: string,
  { method = 'GET', headers = {}, body, responseDelayMs = 0 }: SendOptions = {},
): Promise<Response> {
  const { fetch, baseUrl, signal } = call;
  // Without the query, which may contain a link's signature: errors are logged.
  const what = `${method} ${path.replace(/\?.*/, '')}`;
  const deadlineMs = call.timeoutMs + responseDelayMs;
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), deadlineMs);
  try {
    const response = await fetch(urlBelow(baseUrl, path), {
      method,
      headers: { ...call.headers, ...headers },
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]),
    });
    if (response.ok) return response;
    throw await errorOfResponse(response, what);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ClientError) throw error;
    if (timeout.signal.aborted)
      throw new ClientError({ code: 'timeout', message: `${what} had no response within ${deadlineMs} ms` });
    throw connectionError(what, error);
  } finally {
    clearTimeout(timer);
  }
}

/** Creates the error for a missing or incomplete response; `what` describes the request. */
export function connectionError(what: string, cause?: unknown): ClientError {
  return new ClientError({ code: 'connection_failed', message: `the connection failed: ${what}`, cause });
}

/** A JSON body, and the seconds to wait before the next request. */
interface JsonResponse<Body> {
  body: Body;
  retryAfterS: number | undefined;
}

/**
 * Sends one request and parses the JSON. Throws as {@link send} and {@link readParts}, and {@link ClientError} if it is
 * not JSON.
 */
export async function sendForJson<Body>(call: Call, path: string, options?: SendOptions): Promise<JsonResponse<Body>> {
  const response = await send(call, path, options);
  const text = new TextDecoder().decode(await readBytes(call, response));
  try {
    return { body: JSON.parse(text) as Body, retryAfterS: retryAfterOf(response) };
  } catch (cause) {
    throw new ClientError({ status: 200, code: 'invalid_answer', message: 'the answer is not JSON', cause });
  }
}

/** Reads a complete body. Throws as {@link readParts}. */
export async function readBytes(call: Call, { body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  if (body !== null) for await (const part of readParts(call, body)) parts.push(part);
  return concatenate(parts);
}

export function concatenate(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

/**
 * Yields a body's parts as they arrive. Throws {@link ClientError} if it breaks off or stalls, or the signal's reason.
 */
export async function* readParts<Part extends Uint8Array>(
  { silenceMs, signal }: Call,
  body: ReadableStream<Part>,
): AsyncGenerator<Part, void> {
  // Not `for await`: in Safari, streams are not iterable.
  const reader = body.getReader();
  try {
    for (;;) {
      const part = await readWithin(reader, silenceMs);
      if (part === undefined) return;
      yield part;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw connectionError('a response broke off', error);
  } finally {
    // Closes the connection if the consumer stops early.
    reader.cancel().catch(() => {});
  }
}

function readWithin<Part>(reader: ReadableStreamDefaultReader<Part>, ms: number): Promise<Part | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no data for ${ms} ms`)), ms);
    reader
      .read()
      .then(({ value }) => resolve(value), reject)
      .finally(() => clearTimeout(timer));
  });
}

/** Retries an idempotent operation after temporary errors, up to `maxRetries` times. */
export async function retrying<Result>(
  call: Call,
  attempt: (failures: number) => Promise<Result>,
  isRetryable: (error: unknown) => error is ClientError = isTemporary,
): Promise<Result> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(failures);
    } catch (error) {
      if (!isRetryable(error) || failures >= call.maxRetries) throw error;
      await backOff(call, { failures, retryAfterS: error.retryAfterS });
    }
  }
}

export interface BackOffOptions {
  /** Failed tries in a row, not counting the latest. */
  failures: number;
  /** The server's `retry:`, which replaces the first wait. */
  retryMs?: number | undefined;
  /** The server's `Retry-After`, the minimum wait. */
  retryAfterS?: number | undefined;
}

/**
 * Waits before the next try: exponential back-off up to 15 s, with up to 50 % jitter so that the clients of a process
 * that died do not reconnect at the same moment.
 */
export function backOff(
  { random, delay, signal }: Call,
  { failures, retryMs = firstBackOffMs, retryAfterS = 0 }: BackOffOptions,
): Promise<void> {
  const grownMs = failures === 0 ? retryMs : Math.max(retryMs, firstBackOffMs) * 2 ** failures;
  const baseMs = Math.max(retryMs, Math.min(maxBackOffMs, grownMs), retryAfterS * 1000);
  return delay(Math.min(maxTimerMs, Math.round(baseMs * (1 + random() / 2))), signal);
}
