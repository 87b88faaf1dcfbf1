/** One try at the API, the reading of its answer, and when to try again. */
import { ClientError, errorOfResponse, isPassing, retryAfterOf } from './client-error.ts';
import type { Call } from './options.ts';

const firstBackOffMs = 250;
const maxBackOffMs = 15_000;
/** The longest timer there is; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Path of a request below the client's `baseUrl`. */
export function requestPath(id: string): string {
  return `/v1/predict/${encodeURIComponent(id)}`;
}

export interface SendOptions {
  method?: 'GET' | 'POST' | 'DELETE';
  headers?: Readonly<Record<string, string>>;
  body?: string | FormData;
  /** Milliseconds for which the server was asked to hold its answer back. */
  heldBackMs?: number;
}

/** One try. Resolves when a 2xx answer begins; throws {@link ClientError}, or the signal's reason. */
export async function send(
  call: Call,
  path: string,
  { method = 'GET', headers = {}, body, heldBackMs = 0 }: SendOptions = {},
): Promise<Response> {
  const { fetch, baseUrl, signal } = call;
  // Without the query: the signature of a link is nothing for logs.
  const what = `${method} ${path.replace(/\?.*/, '')}`;
  const patienceMs = call.timeoutMs + heldBackMs;
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), patienceMs);
  try {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { ...call.headers, ...headers },
      ...(body === undefined ? {} : { body }),
      signal: signal === undefined ? late.signal : AbortSignal.any([signal, late.signal]),
    });
    if (response.ok) return response;
    throw await errorOfResponse(response, what);
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ClientError) throw error;
    if (late.signal.aborted)
      throw new ClientError({ code: 'timeout', message: `${what} was not answered within ${patienceMs} ms` });
    throw connectionFailed(what, error);
  } finally {
    clearTimeout(timer);
  }
}

/** No answer to `what`, or none that is whole. */
export function connectionFailed(what: string, cause?: unknown): ClientError {
  return new ClientError({ code: 'connection_failed', message: `the connection failed: ${what}`, cause });
}

/** What came, and in how many seconds asking again makes sense. */
interface JsonAnswer<Body> {
  body: Body;
  retryAfterS: number | undefined;
}

/** The JSON of one try. Throws as {@link send} and {@link readParts}, and {@link ClientError} for what is not JSON. */
export async function sendForJson<Body>(call: Call, path: string, options?: SendOptions): Promise<JsonAnswer<Body>> {
  const response = await send(call, path, options);
  const text = new TextDecoder().decode(await readBytes(call, response));
  try {
    return { body: JSON.parse(text) as Body, retryAfterS: retryAfterOf(response) };
  } catch (cause) {
    throw new ClientError({ status: 200, code: 'invalid_answer', message: 'the answer is not JSON', cause });
  }
}

/** An answer's body, whole; throws as {@link readParts}. */
export async function readBytes(call: Call, { body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  if (body !== null) for await (const part of readParts(call, body)) parts.push(part);
  return joined(parts);
}

export function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** A body as it comes. Throws {@link ClientError} when it breaks off or stalls, or the signal's reason. */
export async function* readParts<Part extends Uint8Array>(
  { silenceMs, signal }: Call,
  body: ReadableStream<Part>,
): AsyncGenerator<Part, void> {
  // Not `for await`: Safari's streams are no iterables.
  const reader = body.getReader();
  try {
    for (;;) {
      const part = await readWithin(reader, silenceMs);
      if (part === undefined) return;
      yield part;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw connectionFailed('an answer broke off', error);
  } finally {
    // Closes the connection of a reader that leaves; nothing to wait for.
    reader.cancel().catch(() => {});
  }
}

function readWithin<Part>(reader: ReadableStreamDefaultReader<Part>, ms: number): Promise<Part | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`nothing came for ${ms} ms`)), ms);
    reader
      .read()
      .then(({ value }) => resolve(value), reject)
      .finally(() => clearTimeout(timer));
  });
}

/** Tries again what may fare better later, up to `maxRetries` times; for what may safely be done twice. */
export async function retrying<Result>(
  call: Call,
  attempt: (failures: number) => Promise<Result>,
  isWorthIt: (error: unknown) => error is ClientError = isPassing,
): Promise<Result> {
  for (let failures = 0; ; failures++) {
    try {
      return await attempt(failures);
    } catch (error) {
      if (!isWorthIt(error) || failures >= call.maxRetries) throw error;
      await backOff(call, { failures, retryAfterS: error.retryAfterS });
    }
  }
}

export interface BackOffOptions {
  /** Tries in a row that brought nothing, before the one that just did so. */
  failures: number;
  /** What the server's `retry:` asks for, in place of the first wait. */
  retryMs?: number | undefined;
  /** What the server's `Retry-After` asks for: never less. */
  retryAfterS?: number | undefined;
}

/**
 * Waits before the next try: doubled each time up to 15 s, and up to half as much again by chance, so that a thousand
 * clients of a process that died do not come back in the same moment.
 */
export function backOff(
  { random, delay, signal }: Call,
  { failures, retryMs = firstBackOffMs, retryAfterS = 0 }: BackOffOptions,
): Promise<void> {
  const grownMs = failures === 0 ? retryMs : Math.max(retryMs, firstBackOffMs) * 2 ** failures;
  const baseMs = Math.max(retryMs, Math.min(maxBackOffMs, grownMs), retryAfterS * 1000);
  return delay(Math.min(maxTimerMs, Math.round(baseMs * (1 + random() / 2))), signal);
}
