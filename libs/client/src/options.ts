/** Options of a client: the API's address, authentication and retries. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8080`, or with a path for an API behind a proxy. Empty: the page's own origin. */
  baseUrl: string;
  /** A replacement for the global `fetch`. */
  fetch?: typeof globalThis.fetch;
  /** Sent as `Authorization: Bearer …`, for an API that requires keys. */
  apiKey?: string | undefined;
  /** Sent with every request, for example for a proxy. */
  headers?: Readonly<Record<string, string>>;
  /**
   * Maximum retries in a row of a request or a stream's connection; default 10, a bit over a minute. Each event resets
   * the count. A submission whose response is lost is retried, and stored only once.
   */
  maxRetries?: number;
  /** Milliseconds until a response must begin; default 30,000. */
  timeoutMs?: number;
  /** Milliseconds without data until a connection counts as lost; default 45,000, three heartbeats of a stream. */
  silenceMs?: number;
  /** Waits before a retry; rejects with the signal's reason. For tests. */
  delay?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** Returns a number from 0 up to 1, for the jitter of waits. For tests. */
  random?: () => number;
}

/** Options of every function. */
export interface SignalOptions {
  /** Aborts the call, which throws the signal's reason. Does not cancel the request: use `cancel`. */
  signal?: AbortSignal | undefined;
}

export interface SubmitOptions extends SignalOptions {
  /** Submissions with the same key and body are one request. Default: a random key per call. */
  idempotencyKey?: string | undefined;
}

/** The options of one call, with defaults and its signal. */
export interface Call extends Required<Omit<ClientOptions, 'apiKey'>> {
  signal: AbortSignal | undefined;
}

/** Applies the defaults, and removes trailing slashes from `baseUrl`. */
export function withDefaults({
  baseUrl,
  // Called without `this`, as browsers require; looked up on each call, because tests replace it.
  fetch = (input, init) => globalThis.fetch(input, init),
  apiKey,
  headers: otherHeaders = {},
  maxRetries = 10,
  timeoutMs = 30_000,
  silenceMs = 45_000,
  delay = cancelableDelay,
  random = Math.random,
}: ClientOptions): Omit<Call, 'signal'> {
  const base = baseUrl.replace(/\/+$/, '');
  const headers = { ...otherHeaders, ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }) };
  return { baseUrl: base, fetch, headers, maxRetries, timeoutMs, silenceMs, delay, random };
}

async function cancelableDelay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', over);
      resolve();
    };
    const timer = setTimeout(over, ms);
    signal?.addEventListener('abort', over);
  });
  signal?.throwIfAborted();
}
