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
