import type { WebSocket } from 'ws';
import { unavailable } from '../../calls/backend-error.ts';

/** Max messages that wait for their reader, and their max size; a server that sends more is cut off. */
const maxWaiting = 10_000;
const maxWaitingBytes = 64 * 1024 * 1024;

interface WaitingMessage {
  readonly data: Buffer;
  readonly isBinary: boolean;
}

/** Reads the messages of a WebSocket in order: texts, and bytes of binary messages. */
export class UpstreamSocket {
  readonly #socket: WebSocket;
  readonly #messages: WaitingMessage[] = [];
  #bytes = 0;
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
      // A message may arrive after the error.
      if (this.#error !== undefined) return;
      this.#messages.push({ data, isBinary });
      this.#bytes += data.length;
      if (this.#messages.length > maxWaiting) fail(unavailable(`sent more than ${maxWaiting} messages at once`));
      if (this.#bytes > maxWaitingBytes) fail(unavailable(`sent more than ${maxWaitingBytes} bytes at once`));
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
    if (message === undefined) {
      if (this.#error !== undefined) throw this.#error;
      return undefined;
    }
    const { data, isBinary } = message;
    this.#bytes -= data.length;
    return isBinary ? data : data.toString('utf8');
  }

  close(): void {
    this.#socket.terminate();
  }
}
