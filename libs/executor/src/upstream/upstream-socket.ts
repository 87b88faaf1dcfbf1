import type { WebSocket } from 'ws';
import { unavailable } from '../calls/backend-error.ts';

/** Max messages that wait for their reader; a server that sends more is cut off. */
const maxWaiting = 10_000;

/** Reads the messages of a WebSocket in order: texts, and bytes of binary messages. */
export class UpstreamSocket {
  readonly #socket: WebSocket;
  readonly #messages: (string | Buffer)[] = [];
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /**
   * @param signal closes the socket.
   * @param onFailure receives the error of a socket that closes or fails, also before it is open.
   */
  constructor(socket: WebSocket, signal: AbortSignal, onFailure: (error: Error) => void) {
    this.#socket = socket;
    const fail = (error: Error): void => {
      this.#error ??= error;
      onFailure(this.#error);
      this.#wake?.();
      socket.terminate();
    };
    const abort = (): void => fail(signal.reason as Error);
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      this.#messages.push(isBinary ? data : data.toString('utf8'));
      if (this.#messages.length > maxWaiting) fail(unavailable(`sent more than ${maxWaiting} messages at once`));
      this.#wake?.();
    });
    socket.on('error', fail);
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      fail(unavailable('closed its WebSocket'));
    });
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
  }

  /**
   * Returns the next message, or undefined if none arrives in time. With a timeout of 0 or less, returns at once.
   *
   * @throws the error that ended the socket, after its last message.
   */
  async next(timeoutMs: number): Promise<string | Buffer | undefined> {
    if (timeoutMs > 0 && this.#messages.length === 0 && this.#error === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.#wake = undefined;
    }
    const message = this.#messages.shift();
    if (message === undefined && this.#error !== undefined) throw this.#error;
    return message;
  }

  close(): void {
    this.#socket.terminate();
  }
}
