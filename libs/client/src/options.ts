/** Where the API is, and how to reach it. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8080`; a path is kept, for an API behind a proxy. Empty is this page's own origin. */
  baseUrl: string;
  /** Another `fetch`; default: the global one. */
  fetch?: typeof globalThis.fetch;
  /** Sent as `Authorization: Bearer …`, for an API that wants keys. */
  apiKey?: string | undefined;
  /** Sent with every request, for a proxy in between. */
  headers?: Readonly<Record<string, string>>;
  /**
   * How often in a row a request or a stream's connection is tried again; default 10, a bit over a minute. An event
   * that arrives starts the count anew. Submitting is tried again when its answer got lost, and stored once all the same.
   */
  maxRetries?: number;
  /** Milliseconds until an answer must have begun; default 30,000. */
  timeoutMs?: number;
  /** Milliseconds without a byte after which a connection counts as lost; default 45,000, three heartbeats of a stream. */
  silenceMs?: number;
  /** Waits before another try; rejects with the signal's reason. For tests that must not wait. */
  delay?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
  /** From 0 up to 1: the jitter of the waits. For tests. */
  random?: () => number;
}

/** The options with all defaults, and what ends this call. */
export interface Call extends Required<Omit<ClientOptions, 'apiKey'>> {
  signal: AbortSignal | undefined;
}

/** A `baseUrl` may end with slashes. */
export function withDefaults({
  baseUrl,
  // Called without `this`, and looked up late: browsers refuse it on another object, tests replace it.
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
