/** Base class of the fake upstream servers. Writes words until the connection closes; counts open responses. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';

/** Handles a request in place of the server, or returns false to leave the request to the server. */
export type ToyFault = (
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
) => boolean | Promise<boolean>;

export abstract class ToyServer {
  /** Responses to POST requests in progress. */
  openAnswers = 0;
  maxOpenAnswers = 0;
  /** Bodies of POST requests, in order of arrival. */
  readonly bodies: Record<string, unknown>[] = [];
  /** Distinct Authorization headers; undefined for requests without one. */
  readonly keys = new Set<string | undefined>();
  /** Called for each request before the server answers. */
  fault: ToyFault = () => false;
  #server: Server | undefined;
  #port = 0;

  /** Listens on the port of the previous start, if any. @returns the URL. */
  async start(): Promise<string> {
    const server = createServer((request, response) => void this.#answer(request, response));
    this.#server = server;
    this.prepare(server);
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Closes all connections, also in the middle of a response. */
  stop(): Promise<unknown> {
    const server = this.#server!;
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  }

  /** Runs before the server listens. */
  protected prepare(_server: Server): void {}

  /** Answers a request; `body` is undefined for GET. */
  protected abstract answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse): unknown;

  protected sendJson(response: ServerResponse, body: unknown, status = 200): void {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }

  /** Yields at most `max` words, derived from the prompt and the seed, until the connection closes. */
  protected async *words(
    response: ServerResponse,
    { prompt, seed, max = Infinity }: { prompt: string; seed: number; max?: number },
  ) {
    for (let at = 0; at < max && !response.destroyed; at++) {
      yield ` ${prompt.at(at % prompt.length)!.repeat(1 + (at % 3))}é🦊${seed}`;
      await setImmediate();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    this.keys.add(headers.authorization);
    const body = method === 'POST' ? await readBody(request) : undefined;
    if (await this.fault(request, response, body)) return;
    if (body !== undefined) {
      this.bodies.push(body);
      this.openAnswers += 1;
      this.maxOpenAnswers = Math.max(this.maxOpenAnswers, this.openAnswers);
      response.once('close', () => (this.openAnswers -= 1));
    }
    await this.answer(url, body, response);
  }
}

/** Reads JSON or a form; a file in a form is a `File`. */
async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const data = await buffer(request);
  const contentType = request.headers['content-type'] ?? '';
  if (!contentType.startsWith('multipart/')) return JSON.parse(data.toString()) as Record<string, unknown>;
  const form = await new Response(data, { headers: { 'Content-Type': contentType } }).formData();
  return Object.fromEntries(form) as Record<string, unknown>;
}

/** Writes a text byte by byte, so that the client must reassemble multi-byte characters. */
export function writeByBytes(response: ServerResponse, text: string): void {
  for (const byte of Buffer.from(text)) response.write(Uint8Array.of(byte));
}
