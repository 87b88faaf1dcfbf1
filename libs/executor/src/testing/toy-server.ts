/** What toy servers have in common: they write words without end, and keep count of who is being answered. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';

/** Answers in a way of its own; true where it did. */
export type ToyFault = (
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
) => boolean | Promise<boolean>;

export abstract class ToyServer {
  /** Answers under way. */
  openAnswers = 0;
  mostAnswers = 0;
  readonly bodies: Record<string, unknown>[] = [];
  readonly keys = new Set<string | undefined>();
  /** Comes first. */
  fault: ToyFault = () => false;
  #server: Server | undefined;
  #port = 0;

  /** Where it was before, if it was. */
  async start(): Promise<string> {
    const server = createServer((request, response) => void this.#answer(request, response));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    return `http://127.0.0.1:${this.#port}`;
  }

  /** In the middle of whatever it says. */
  stop(): Promise<unknown> {
    const server = this.#server!;
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  }

  /** GET: `body` is undefined. */
  protected abstract answer(path: string, body: Record<string, unknown> | undefined, response: ServerResponse): unknown;

  protected say(response: ServerResponse, body: unknown, status = 200): void {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  }

  /** Words of a text that follows from the prompt and the seed, as many as there is time for. */
  protected async *words(
    response: ServerResponse,
    { prompt, seed, most = Infinity }: { prompt: string; seed: number; most?: number },
  ) {
    for (let at = 0; at < most && !response.destroyed; at++) {
      yield ` ${prompt.at(at % prompt.length)!.repeat(1 + (at % 3))}é🦊${seed}`;
      await setImmediate();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '', headers } = request;
    this.keys.add(headers.authorization);
    const body = method === 'POST' ? ((await json(request)) as Record<string, unknown>) : undefined;
    if (await this.fault(request, response, body)) return;
    if (body !== undefined) {
      this.bodies.push(body);
      this.openAnswers += 1;
      this.mostAnswers = Math.max(this.mostAnswers, this.openAnswers);
      response.once('close', () => (this.openAnswers -= 1));
    }
    await this.answer(url, body, response);
  }
}

/** An event whose bytes come one after the other: readers have to put characters together. */
export function writeByBytes(response: ServerResponse, text: string): void {
  for (const byte of Buffer.from(text)) response.write(Uint8Array.of(byte));
}
