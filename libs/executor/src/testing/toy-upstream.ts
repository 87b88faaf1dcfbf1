/** A server that writes text, as others' inference servers do: a request goes in whole, and comes back in lines of JSON. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setImmediate } from 'node:timers/promises';

export interface ToyPrompt {
  prompt: string;
  /** Words to write; without a limit it never ends. */
  words?: number;
}

/** A line of an answer. */
export type ToyLine = { readonly word: string } | { readonly stop: true };

export class ToyUpstream {
  /** Answers under way. */
  openAnswers = 0;
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): Promise<unknown> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/model') return void response.end(JSON.stringify({ id: 'toy' }));
    const { prompt, words = Infinity } = (await json(request)) as ToyPrompt;
    if (prompt === '') {
      response.statusCode = 400;
      return void response.end(JSON.stringify({ message: 'prompt: is empty' }));
    }
    this.openAnswers += 1;
    response.once('close', () => (this.openAnswers -= 1));
    for (let at = 0; at < words && !response.destroyed; at++) {
      const line: ToyLine = { word: ` ${prompt.at(at % prompt.length)!.repeat(1 + (at % 3))}${at}` };
      response.write(`${JSON.stringify(line)}\n`);
      await setImmediate();
    }
    const last: ToyLine = { stop: true };
    response.end(`${JSON.stringify(last)}\n`);
  }
}
