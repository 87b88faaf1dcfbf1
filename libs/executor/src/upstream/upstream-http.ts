import { Agent as HttpAgent, type IncomingMessage, request as requestHttp } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { readEvents } from './read-events.ts';
import { errorIn, type SaidError, shownReason, unavailable, UpstreamError } from './upstream-error.ts';

/** Of a model's facts, and of what is said of an error. */
const mostFactBytes = 4 * 1024 * 1024;
/** How long a server that has said all that matters may take to end its answer; then its connection is not used again, ms. */
const endingMs = 1000;
const defaultRetryMs = 1000;
const longestRetryMs = 10_000;

/** A connection that was kept open was closed just as it was used again: nothing has begun. */
class StaleConnection extends Error {}

/** An answer under way. */
export interface UpstreamAnswer {
  readonly contentType: string;
  /** The data of its events, which have at most so many bytes each. */
  events(mostBytes: number): AsyncGenerator<unknown, void, void>;
  /** All of it. */
  json(mostBytes: number): Promise<unknown>;
  /** It has said what matters: from now on it is waited for a little only. */
  endSoon(): void;
}

/**
 * A server, over Node's own client: `fetch` gives up on an answer that says nothing for five minutes, and a long prompt may take
 * longer. Nothing is followed to where it redirects. The key goes into one header, and into nothing else.
 */
export class UpstreamHttp {
  /** As logs may name it: without user and password. */
  readonly name: string;
  readonly #base: URL;
  readonly #key: string | undefined;
  readonly #agent: HttpAgent | HttpsAgent;

  constructor({ url, key }: { url: string; key?: string | undefined }) {
    this.#base = new URL(url.replace(/\/+$/, ''));
    this.#base.username = '';
    this.#base.password = '';
    this.name = this.#base.href.replace(/\/$/, '');
    this.#key = key;
    this.#agent = new (this.#isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  }

  /** Closes what is kept open; what is under way goes on. */
  rest(): void {
    this.#agent.destroy();
  }

  /** @throws as `post`; what is no JSON is `model_unsupported`. */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const response = await this.#send('GET', path, { signal, secrets: [] });
    try {
      return await readJson(response, mostFactBytes);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new UpstreamError('model_unsupported', `answers GET ${path} with something that is no JSON`);
    }
  }

  /**
   * Asks for something to be made.
   *
   * @param secrets what was sent, which must not come back in an error.
   * @throws UpstreamError `invalid_request` when it refuses the request; `unavailable` when it is busy or fails; `model_unsupported`
   * when it redirects, or does not know the path or the key. Node's own errors when it is away: `named` makes one kind of all.
   */
  async post(
    path: string,
    body: object,
    options: { signal: AbortSignal; secrets: readonly string[] },
  ): Promise<UpstreamAnswer> {
    const response = await this.#send('POST', path, { ...options, body: JSON.stringify(body) });
    return {
      contentType: contentTypeOf(response),
      events: (mostBytes) => eventsOf(response, mostBytes),
      json: (mostBytes) => readJson(response, mostBytes),
      endSoon: () => endSoon(response),
    };
  }

  get #isSecure(): boolean {
    return this.#base.protocol === 'https:';
  }

  async #send(
    method: string,
    path: string,
    options: { body?: string; signal: AbortSignal; secrets: readonly string[] },
  ): Promise<IncomingMessage> {
    const response = await this.#exchange(method, path, options, this.#agent).catch((error: unknown) => {
      // All that were kept open may be like this one.
      if (error instanceof StaleConnection) return this.#exchange(method, path, options, false);
      throw error;
    });
    if (response.statusCode === 200) return response;
    throw await this.#refusal(`${method} ${path}`, response, options);
  }

  #exchange(
    method: string,
    path: string,
    { body, signal }: { body?: string; signal: AbortSignal },
    agent: HttpAgent | HttpsAgent | false,
  ): Promise<IncomingMessage> {
    const headers = {
      Accept: 'text/event-stream, application/json',
      ...(this.#key !== undefined && { Authorization: `Bearer ${this.#key}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }),
    };
    const url = new URL(this.#base);
    url.pathname = url.pathname.replace(/\/$/, '') + path;
    const send = this.#isSecure ? requestHttps : requestHttp;
    const request = send(url, { method, headers, agent });
    // Without an error: nobody would hear that of a connection whose answer has just come to its end.
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
      request.end(body);
    });
  }

  async #refusal(
    what: string,
    response: IncomingMessage,
    { body, secrets }: { body?: string; secrets: readonly string[] },
  ): Promise<UpstreamError> {
    const status = response.statusCode ?? 0;
    const said = await readError(response);
    const reason = shownReason(said?.reason, this.#key === undefined ? secrets : [...secrets, this.#key]);
    const is = (...all: number[]): boolean => all.includes(status);
    const answers = `answers ${what} with ${status}`;
    // Filters say 403 too, of one request.
    if (is(401) || (is(403) && body === undefined)) {
      const expected = this.#key === undefined ? 'set UPSTREAM_KEY' : 'expected that it takes the key of UPSTREAM_KEY';
      return new UpstreamError('model_unsupported', `${answers}: ${expected}`);
    }
    const isBusy = is(408, 425, 429);
    if (isBusy || status >= 500 || said?.isOfRequest === false)
      return new UpstreamError('unavailable', `${answers}: ${reason}`, {
        retryAfterMs: retryAfterOf(response),
        isBusy,
      });
    if (body !== undefined && (is(400, 403, 413, 422) || (status >= 400 && said !== undefined)))
      return new UpstreamError('invalid_request', reason);
    return new UpstreamError('model_unsupported', `${answers}, expected 200: it is no such server, or elsewhere`);
  }
}

async function readJson(response: IncomingMessage, mostBytes: number): Promise<unknown> {
  return JSON.parse((await readAll(response, mostBytes)).toString('utf8')) as unknown;
}

async function* eventsOf(response: IncomingMessage, mostBytes: number): AsyncGenerator<unknown, void, void> {
  try {
    const chunks = response.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    for await (const event of readEvents(chunks, mostBytes)) yield event;
  } catch (error) {
    response.destroy();
    throw error;
  } finally {
    letEnd(response);
  }
}

async function readError(response: IncomingMessage): Promise<SaidError | undefined> {
  try {
    return errorIn(await readJson(response, mostFactBytes));
  } catch {
    return undefined;
  }
}

async function readAll(response: IncomingMessage, mostBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > mostBytes) throw unavailable(`sent an answer of more than ${mostBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Lets an answer of which all was read come to its end, so that its connection can be used again. */
function letEnd(response: IncomingMessage): void {
  if (response.destroyed || response.readableEnded) return;
  response.on('error', () => {});
  endSoon(response);
  response.resume();
}

function endSoon(response: IncomingMessage): void {
  const timer = setTimeout(() => response.destroy(), endingMs);
  response.once('close', () => clearTimeout(timer));
}

function contentTypeOf({ headers }: IncomingMessage): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();
}

function retryAfterOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['retry-after'] ?? NaN);
  return Number.isFinite(seconds) ? Math.min(Math.max(0, 1000 * seconds), longestRetryMs) : defaultRetryMs;
}
