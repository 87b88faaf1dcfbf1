/**
 * The open calls in a module's process. Each value is sent on its own, and only while the parent keeps up with reading.
 */
import { inspect } from 'node:util';
import { serialize } from 'node:v8';
import { WakeSignal } from '@darkroom/core';
import { fieldOf } from '../../upstream/http/fields.ts';
import { type MessageFromModule, type MessageToModule, maxUnread } from '../module-message.ts';
import type { LoadedModule } from './load-module.ts';

interface OpenCall {
  readonly controller: AbortController;
  unread: number;
  /** Raised when the parent has read a message, or aborts. */
  readonly resumed: WakeSignal;
}

/** Max lengths of an error's message and stack, in UTF-16 code units. */
const maxMessageLength = 2000;
const maxStackLength = 8000;
/** Errors that one failure reports. */
const maxCauses = 5;

export class ModuleCalls {
  readonly #run: LoadedModule['run'];
  readonly #send: (message: MessageFromModule) => void;
  readonly #open = new Map<number, OpenCall>();

  constructor(run: LoadedModule['run'], send: (message: MessageFromModule) => void) {
    this.#run = run;
    this.#send = send;
  }

  async run({ call, request, maxBytes }: Extract<MessageToModule, { type: 'run' }>): Promise<void> {
    const open: OpenCall = { controller: new AbortController(), unread: 0, resumed: new WakeSignal() };
    this.#open.set(call, open);
    try {
      const value = await this.#read(await this.#run(request as never, open.controller.signal), {
        call,
        open,
        maxBytes: maxBytes.yielded,
      });
      this.#send({ type: 'returned', call, value: pack(value, maxBytes.returned) });
    } catch (error) {
      const isRefusal = fieldOf(error, 'code') === 'invalid_request';
      // Clients read refusals.
      const message = isRefusal ? ownMessageOf(error) : messageOf(error);
      this.#send({ type: 'threw', call, isRefusal, message, stack: stackOf(error) });
    } finally {
      this.#open.delete(call);
    }
  }

  taken(call: number): void {
    const open = this.#open.get(call);
    if (open === undefined) return;
    open.unread -= 1;
    open.resumed.wake();
  }

  abort(call: number): void {
    const open = this.#open.get(call);
    open?.controller.abort();
    open?.resumed.wake();
  }

  /** Sends what an async iterator yields and returns its return value; returns any other value as it is. */
  async #read(result: unknown, { call, open, maxBytes }: { call: number; open: OpenCall; maxBytes: number }) {
    const iterator = iteratorOf(result);
    if (iterator === undefined) return result;
    const { signal } = open.controller;
    for (;;) {
      const { done, value } = await iterator.next();
      if (done === true) return value;
      if (!signal.aborted) {
        this.#send({ type: 'yielded', call, value: await this.#pack(value, { maxBytes, open, iterator }) });
        open.unread += 1;
      }
      while (open.unread >= maxUnread && !signal.aborted) await open.resumed.wait();
      if (signal.aborted) return void (await iterator.return?.());
    }
  }

  /**
   * Serializes a value. On failure, aborts the call and closes its iterator before throwing, so that the slot is not
   * reused too early.
   */
  async #pack(
    value: unknown,
    {
      maxBytes,
      open,
      iterator,
    }: { maxBytes: number; open: OpenCall; iterator: Pick<AsyncIterator<unknown>, 'return'> },
  ): Promise<Uint8Array> {
    try {
      return pack(value, maxBytes);
    } catch (error) {
      open.controller.abort();
      await iterator.return?.();
      throw error;
    }
  }
}

function iteratorOf(result: unknown): Pick<AsyncIterator<unknown>, 'next' | 'return'> | undefined {
  const iterate = fieldOf(result, Symbol.asyncIterator);
  if (typeof iterate === 'function') return (result as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return undefined;
}

/** @throws Error if the value is too large or cannot be serialized. */
export function pack(value: unknown, maxBytes: number): Uint8Array {
  const packed = serialize(value);
  if (packed.length > maxBytes)
    throw new Error(`it sent a value of ${packed.length} bytes, expected at most ${maxBytes}`);
  return packed;
}

/** Returns the message of any thrown value, which need not be an Error, without those of its causes. */
function ownMessageOf(error: unknown): string {
  const message = fieldOf(error, 'message');
  return (typeof message === 'string' ? message : safeText(error)).slice(0, maxMessageLength);
}

/** Returns the message of any thrown value and those of its causes. */
export function messageOf(error: unknown): string {
  return withCauses(error).map(ownMessageOf).join(': ').slice(0, maxMessageLength);
}

/** Returns the stacks of a thrown value and its causes; empty if there is none. */
function stackOf(error: unknown): string {
  const stacks = withCauses(error).map((each) => fieldOf(each, 'stack'));
  const texts = stacks.filter((stack) => typeof stack === 'string');
  return texts.join('\ncaused by: ').slice(0, maxStackLength);
}

/** Returns the error, its causes, and the errors of an AggregateError, depth first. Cycles end at the limit. */
function withCauses(error: unknown): unknown[] {
  const found: unknown[] = [];
  const visit = (each: unknown): void => {
    if (found.length >= maxCauses) return;
    found.push(each);
    const cause = fieldOf(each, 'cause');
    if (cause !== undefined && cause !== null) visit(cause);
    const errors = fieldOf(each, 'errors');
    if (Array.isArray(errors)) for (const one of errors.slice(0, maxCauses)) visit(one);
  };
  visit(error);
  return found;
}

function safeText(value: unknown): string {
  try {
    const text = String(value);
    return text === '[object Object]' ? inspect(value, { breakLength: Infinity }) : text;
  } catch {
    return `a ${typeof value} that cannot be converted to text`;
  }
}
