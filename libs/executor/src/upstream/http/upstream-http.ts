import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { WebSocket } from 'ws';
import { readServerSentEvents } from './read-server-sent-events.ts';
import { unavailable, UpstreamError } from '../../calls/backend-error.ts';
import { errorIn, safeReason } from './upstream-error.ts';
import { UpstreamSocket } from './upstream-socket.ts';

/** Max size of a model description or error body, bytes, if the caller sets no other. */
const maxDescriptionBytes = 4 * 1024 * 1024;
/** Time a server may take to end its response after the last data; then the connection is dropped, ms. */
const drainTimeoutMs = 1000;
const defaultRetryMs = 1000;
const maxRetryMs = 10_000;

/** A kept-alive connection was closed as it was reused: the server has not processed the request. */
class StaleConnection extends Error {}

interface PostOptions {
  signal: AbortSignal;
  /** Client text that must not appear in errors. */
  secrets: readonly string[];
  /**
   * Returns the error for the body of a rejection, or undefined to derive it from the status. Not called for a status
   * that is about the key, the size of the body or the server's load.
   */
  readRejection?: (body: unknown) => UpstreamError | undefined;
}

interface StateOptions {
  maxBytes: number;
  /** Error message if the server answers 404: it no longer has what the call needs. */
  missing: string;
}

interface SentBody {
  data: string | Uint8Array;
  contentType: string;
}

type SendOptions = PostOptions & { body?: SentBody; missing?: string };

/** A response in progress. */
export interface UpstreamResponse {
  readonly contentType: string;
  /** Yields the data of its events, of at most `maxBytes` bytes each. */
  events(maxBytes: number): AsyncGenerator<unknown, void, void>;
  /** Reads the complete body. */
  json(maxBytes: number): Promise<unknown>;
  /** Sets a short timeout for the rest: all required data has arrived. */
  endSoon(): void;
}

/**
 * HTTP client of one server. Uses Node's own client, since `fetch` times out after five minutes of silence and a long
 * prompt may take longer. Follows no redirects, and sends the key in one header only.
 */
export class UpstreamHttp {
  /** Name for logs: the URL without user and password. */
  readonly name: string;
  readonly #base: URL;
  readonly #key: string | undefined;
  #agent: HttpAgent | HttpsAgent;

  constructor({ url, key }: { url: string; key?: string | undefined }) {
    this.#base = new URL(url.replace(/\/+$/, ''));
    this.#base.username = '';
    this.#base.password = '';
    this.name = this.#base.href.replace(/\/$/, '');
    this.#key = key;
    this.#agent = this.#createAgent();
  }

  /** Closes all connections. Later requests open new ones. */
  close(): void {
    const agent = this.#agent;
    this.#agent = this.#createAgent();
    agent.destroy();
  }

  /** Reads a description of the server. @throws as `post`; `model_unsupported` if the body is not JSON. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.#send('GET', path, { signal, secrets: [] });
    try {
      return await readJson(response, maxDescriptionBytes);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new UpstreamError('model_unsupported', `answers GET ${path} with something that is not JSON`);
    }
  }

  /** Reads the state of a call. @throws as `post`; `unavailable` on 404, SyntaxError if the body is not JSON. */
  async getState(path: string, signal: AbortSignal, options: StateOptions): Promise<unknown> {
    return JSON.parse((await this.getFile(path, signal, options)).toString('utf8')) as unknown;
  }

  /** Downloads a file of a call. @throws as `post`; `unavailable` on 404. */
  async getFile(path: string, signal: AbortSignal, { maxBytes, missing }: StateOptions): Promise<Buffer> {
    return readAll(await this.#send('GET', path, { signal, secrets: [], missing }), maxBytes);
  }

  /**
   * Opens a WebSocket.
   *
   * @param maxBytes max size of a message.
   * @throws as `post`.
   */
  openSocket(path: string, signal: AbortSignal, maxBytes: number): Promise<UpstreamSocket> {
    const url = this.#urlOf(path);
    url.protocol = this.#isSecure ? 'wss:' : 'ws:';
    const headers = this.#key === undefined ? {} : { Authorization: `Bearer ${this.#key}` };
    const socket = new WebSocket(url, { headers, maxPayload: maxBytes, perMessageDeflate: false });
    return new Promise((resolve, reject) => {
      const opened = new UpstreamSocket(socket, signal, reject);
      socket.once('open', () => resolve(opened));
      socket.once('unexpected-response', (_request, response) => {
        this.#errorOf(`GET ${url.pathname}`, response, { signal, secrets: [] }).then(reject, reject);
      });
    });
  }

  /**
   * Starts a computation, or sends a form.
   *
   * @throws UpstreamError `invalid_request` if the server rejects the request; `unavailable` if it is busy or fails;
   * `model_unsupported` on a redirect, an unknown path or a rejected key. Node's network errors otherwise:
   * `withServerName` converts them.
   */
  async post(path: string, body: object, options: PostOptions): Promise<UpstreamResponse> {
    const response = await this.#send('POST', path, { ...options, body: await toSentBody(body) });
    return {
      contentType: contentTypeOf(response),
      events: (maxBytes) => eventsOf(response, maxBytes),
      json: (maxBytes) => readJson(response, maxBytes),
      endSoon: () => endSoon(response),
    };
  }

  get #isSecure(): boolean {
    return this.#base.protocol === 'https:';
  }

  #createAgent(): HttpAgent | HttpsAgent {
    return new (this.#isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  }

  #urlOf(path: string): URL {
    const url = new URL(this.#base);
    const [pathname = '', search = ''] = path.split('?', 2);
    url.pathname = url.pathname.replace(/\/$/, '') + pathname;
    url.search = search;
    return url;
  }

  async #send(method: string, path: string, options: SendOptions): Promise<IncomingMessage> {
    const agent = this.#agent;
    const response = await this.#exchange(method, path, options, agent).catch((error: unknown) => {
      // Retry on a new connection, unless `close` ended this one: the other idle ones may be stale too.
      if (error instanceof StaleConnection && agent === this.#agent)
        return this.#exchange(method, path, options, false);
      throw error;
    });
    if (response.statusCode === 200 || response.statusCode === 202) return response;
    throw await this.#errorOf(`${method} ${path.split('?', 1)[0]}`, response, options);
  }

  #exchange(
    method: string,
    path: string,
    { body, signal }: SendOptions,
    agent: HttpAgent | HttpsAgent | false,
  ): Promise<IncomingMessage> {
    const headers = {
      Accept: 'text/event-stream, application/json',
      ...(this.#key !== undefined && { Authorization: `Bearer ${this.#key}` }),
      ...(body !== undefined && {
        'Content-Type': body.contentType,
        'Content-Length': Buffer.byteLength(body.data),
      }),
    };
    const send = this.#isSecure ? requestHttps : requestHttp;
    const request = send(this.#urlOf(path), { method, headers, agent });
    // Destroy without an error, which would be unhandled if the response has just ended.
    const abort = (): void => void request.destroy();
    signal.addEventListener('abort', abort);
    request.once('close', () => signal.removeEventListener('abort', abort));
    return new Promise((resolve, reject) => {
      request.once('response', resolve);
      request.on('error', (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && error.code === 'ECONNRESET' && !signal.aborted;
        reject(isStale ? new StaleConnection() : ((signal.reason as Error | undefined) ?? error));
      });
      if (signal.aborted) abort();
      request.end(body?.data);
    });
  }

  async #errorOf(
    what: string,
    response: IncomingMessage,
    { body, secrets, readRejection, missing }: SendOptions,
  ): Promise<UpstreamError> {
    const status = response.statusCode ?? 0;
    const is = (...all: number[]): boolean => all.includes(status);
    const answer = await readRejected(response);
    if (is(404) && missing !== undefined) return unavailable(missing);
    const isAboutBody = status >= 400 && status < 500 && !is(401, 403, 408, 413, 425, 429);
    const rejection = isAboutBody ? readRejection?.(answer) : undefined;
    if (rejection !== undefined) return rejection;
    const reported = errorIn(answer);
    const reason = safeReason(reported?.reason, this.#key === undefined ? secrets : [...secrets, this.#key]);
    const answers = `answers ${what} with ${status}`;
    // Content filters also use 403, for a single request.
    if (is(401) || (is(403) && body === undefined)) {
      const expected = this.#key === undefined ? 'set UPSTREAM_KEY' : 'expected it to accept the key of UPSTREAM_KEY';
      return new UpstreamError('model_unsupported', `${answers}: ${expected}`);
    }
    const isBusy = is(408, 425, 429);
    if (isBusy || status >= 500 || reported?.isRequestFault === false)
      return new UpstreamError('unavailable', `${answers}: ${reason}`, {
        retryAfterMs: retryAfterOf(response),
        isBusy,
      });
    if (body !== undefined && (is(400, 403, 413, 422) || (status >= 400 && reported !== undefined)))
      return new UpstreamError('invalid_request', reason);
    return new UpstreamError(
      'model_unsupported',
      `${answers}, expected 200: it is another kind of server, or at another URL`,
    );
  }
}

async function toSentBody(body: object): Promise<SentBody> {
  if (!(body instanceof FormData)) return { data: JSON.stringify(body), contentType: 'application/json' };
  const encoded = new Response(body);
  return {
    data: new Uint8Array(await encoded.arrayBuffer()),
    contentType: encoded.headers.get('content-type') ?? '',
  };
}

async function readJson(response: IncomingMessage, maxBytes: number): Promise<unknown> {
  return JSON.parse((await readAll(response, maxBytes)).toString('utf8')) as unknown;
}

async function* eventsOf(response: IncomingMessage, maxBytes: number): AsyncGenerator<unknown, void, void> {
  try {
    const chunks = response.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    for await (const event of readServerSentEvents(chunks, maxBytes)) yield event;
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    drain(response);
  }
}

async function readRejected(response: IncomingMessage): Promise<unknown> {
  try {
    return await readJson(response, maxDescriptionBytes);
  } catch {
    return undefined;
  }
}

async function readAll(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > maxBytes) throw unavailable(`sent an answer of more than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Drains a response that has been read, so that its connection can be reused. */
function drain(response: IncomingMessage): void {
  if (response.destroyed || response.readableEnded) return;
  response.on('error', () => {});
  endSoon(response);
  response.resume();
}

function endSoon(response: IncomingMessage): void {
  const timer = setTimeout(() => response.destroy(), drainTimeoutMs);
  response.once('close', () => clearTimeout(timer));
}

function contentTypeOf({ headers }: IncomingMessage): string {
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
  return type.trim().toLowerCase();
}

function retryAfterOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['retry-after'] ?? NaN);
  return Number.isFinite(seconds) ? Math.min(Math.max(0, 1000 * seconds), maxRetryMs) : defaultRetryMs;
}
