/** Event stream clients with one connection each that store nothing of what they read. */
import { connect, type Socket } from 'node:net';

export class EventReader {
  /** HTTP status; undefined before the response. */
  status: number | undefined;
  /** True once the stream has sent `[DONE]`; false if the connection ended earlier. */
  isDone = false;
  /** Message of a connection error. */
  error: string | undefined;
  /** When the last progress event came, by `performance.now()`. */
  progressAtMs = 0;
  /** Resolves when the response begins or the connection closes. */
  readonly answered: Promise<void>;
  readonly closed: Promise<void>;
  readonly #socket: Socket;

  /** @param key API key, on a server with keys. */
  constructor(url: string, id: string, key = '') {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname, () => {
      const authorization = key && `Authorization: Bearer ${key}\r\n`;
      this.#socket.write(
        `GET /v1/predict/${id}/events HTTP/1.1\r\nHost: localhost\r\n${authorization}Connection: close\r\n\r\n`,
      );
    });
    this.closed = new Promise((resolve) => this.#socket.once('close', () => resolve()));
    const beginning = new Promise<void>((resolve) => this.#socket.once('data', () => resolve()));
    this.answered = Promise.race([beginning, this.closed]);
    this.#socket.on('error', ({ message }) => (this.error = message));
    this.#socket.on('data', (data) => this.#read(data.toString('latin1')));
  }

  #read(text: string): void {
    this.status ??= Number(text.slice(9, 12));
    if (text.includes('event: progress')) this.progressAtMs = performance.now();
    if (text.includes('data: [DONE]')) this.isDone = true;
  }
}
