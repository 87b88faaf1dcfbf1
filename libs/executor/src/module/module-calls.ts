/** The calls that a module's process has under way: what they say goes out one by one, and never more of it than is read. */
import { serialize } from 'node:v8';
import { fieldOf } from '../upstream/fields.ts';
import { type MessageFromModule, type MessageToModule, mostUnread, type Packed } from './module-message.ts';
import type { OwnExecutor, OwnPictureRequest, OwnTextRequest } from './own-executor.ts';

type AnyRun = (request: OwnTextRequest | OwnPictureRequest, signal: AbortSignal) => unknown;

interface OpenCall {
  readonly controller: AbortController;
  unread: number;
  /** Goes on when there is room, or nobody reads any more. */
  wake: () => void;
}

/** Of an error's words. */
const longestMessage = 2000;

export class ModuleCalls {
  readonly #executor: OwnExecutor;
  readonly #send: (message: MessageFromModule) => void;
  readonly #open = new Map<number, OpenCall>();

  constructor(executor: OwnExecutor, send: (message: MessageFromModule) => void) {
    this.#executor = executor;
    this.#send = send;
  }

  async run({ call, request, most }: Extract<MessageToModule, { type: 'run' }>): Promise<void> {
    const open: OpenCall = { controller: new AbortController(), unread: 0, wake: () => {} };
    this.#open.set(call, open);
    try {
      const run = this.#executor.run.bind(this.#executor) as AnyRun;
      const value = await this.#read(await run(request, open.controller.signal), { call, open, most: most.said });
      this.#send({ type: 'returned', call, value: pack(value, most.returned) });
    } catch (error) {
      const isRefusal = fieldOf(error, 'code') === 'invalid_request';
      this.#send({ type: 'threw', call, isRefusal, message: messageOf(error) });
    } finally {
      this.#open.delete(call);
    }
  }

  taken(call: number): void {
    const open = this.#open.get(call);
    if (open === undefined) return;
    open.unread -= 1;
    open.wake();
  }

  abort(call: number): void {
    const open = this.#open.get(call);
    open?.controller.abort();
    open?.wake();
  }

  /** To its end, if it is something that says more than one thing. */
  async #read(made: unknown, { call, open, most }: { call: number; open: OpenCall; most: number }) {
    const iterator = iteratorOf(made);
    if (iterator === undefined) return made;
    const { signal } = open.controller;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) return value;
      if (!signal.aborted) {
        this.#send({ type: 'said', call, value: await this.#pack(value, { most, open, iterator }) });
        open.unread += 1;
      }
      while (open.unread >= mostUnread && !signal.aborted) await new Promise<void>((resolve) => (open.wake = resolve));
      if (signal.aborted) return void (await iterator.return?.());
    }
  }

  /** What cannot be told ends the call: it has to hear of that, and to end, before its place is another's. */
  async #pack(
    value: unknown,
    { most, open, iterator }: { most: number; open: OpenCall; iterator: Pick<AsyncIterator<unknown>, 'return'> },
  ): Promise<Packed> {
    try {
      return pack(value, most);
    } catch (error) {
      open.controller.abort();
      await iterator.return?.();
      throw error;
    }
  }
}

function iteratorOf(made: unknown): Pick<AsyncIterator<unknown>, 'next' | 'return'> | undefined {
  const iterate = fieldOf(made, Symbol.asyncIterator);
  if (typeof iterate === 'function') return (made as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return undefined;
}

/** @throws Error if it is too large, or nothing that another process could be told. */
export function pack(value: unknown, mostBytes: number): Packed {
  const packed = serialize(value);
  if (packed.length > mostBytes)
    throw new Error(`it said something of ${packed.length} bytes, expected at most ${mostBytes}`);
  return packed;
}

/** Of whatever was thrown, which need not be an error. */
export function messageOf(error: unknown): string {
  const message = fieldOf(error, 'message');
  return (typeof message === 'string' ? message : safeText(error)).slice(0, longestMessage);
}

function safeText(value: unknown): string {
  try {
    return String(value);
  } catch {
    return `a ${typeof value} that is no text`;
  }
}
