/** Clients that follow requests over connections of their own, and keep nothing of what they read. */
import { connect, type Socket } from 'node:net';

export class EventReader {
  /** Of the answer; undefined before it. */
  status: number | undefined;
  /** It had the end of the events, and not only that of its connection. */
  isDone = false;
  /** Its connection broke. */
  error: string | undefined;
  /** When it had the last progress, by `performance.now()`. */
  progressAtMs = 0;
  /** Settles when the answer begins, or never will. */
  readonly answered: Promise<void>;
  readonly closed: Promise<void>;
  readonly #socket: Socket;

  constructor(url: string, id: string) {
    const { hostname, port } = new URL(url);
    this.#socket = connect(Number(port), hostname, () => {
      this.#socket.write(`GET /v1/predict/${id}/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
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
