import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { DarkroomError, type ModelCard, type RowOutput } from '@darkroom/core';
import type { ImageInput, UpstreamTextInput } from '@darkroom/kinds';
import type { BackendCall, BackendClient, BackendInfo, CallEvent } from '../calls/backend-client.ts';
import { wellFormed } from '../upstream/http/upstream-error.ts';
import { findModule, type ModuleSetting, startError } from './find-module.ts';
import { ModuleChild } from './module-child.ts';
import type { CallMessage } from './module-message.ts';
import { ModuleImageReader } from './image-reader.ts';
import { readCard, readSlots } from './read-card.ts';
import { imageRequest, textRequest } from './module-request.ts';
import { ModuleTextReader } from './text-reader.ts';

export interface ModuleCallerOptions {
  /** Value of EXECUTOR: a path that begins with . or /, or the name of a package. */
  module: string;
  /** The id under which the model is served. */
  model: string;
  /** Max silence of an aborted call before its process is killed, ms. */
  timeoutMs: number;
  /** Environment of the module's process; default: this process's own. */
  environment?: Record<string, string | undefined> | undefined;
}

/** Rate limit on the messages of all calls together, so that a flood does not starve the worker's other work. */
const windowMs = 10;
const maxPerWindow = 50;
const maxRefusalLength = 300;

/** Calls a custom module in its own process. */
export class ModuleClient implements BackendClient {
  readonly name: string;
  readonly #options: ModuleCallerOptions;
  readonly #setting: ModuleSetting;
  /** Creation time of the model card, in seconds since the epoch. */
  readonly #created = Math.floor(Date.now() / 1000);
  #child: ModuleChild | undefined;
  #kind: ModelCard['kind'] | undefined;
  #window: Promise<void> | undefined;
  #readInWindow = 0;

  constructor(options: ModuleCallerOptions) {
    this.name = options.module;
    this.#setting = { name: 'EXECUTOR', module: options.module };
    this.#options = options;
  }

  /** Process id of the module; undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async describe(signal: AbortSignal): Promise<BackendInfo> {
    // A killed process must have exited first, to free the device memory that it holds.
    await Promise.race([this.#child?.ended, aborted(signal)]);
    const setting = this.#setting;
    if (signal.aborted) throw startError(setting, 'its last process cannot be ended');
    const { model, environment } = this.#options;
    const specifier = await findModule(setting);
    const child = new ModuleChild({ specifier, model, exportName: 'createExecutor', environment });
    this.#child = child;
    const limit = 'ten times ENGINE_TIMEOUT_S';
    return child.ready(setting, { signal, limit, read: (info) => this.#readInfo(info) });
  }

  async check(signal: AbortSignal): Promise<void> {
    const child = this.#requireChild();
    if (await Promise.race([child.ping(), aborted(signal).then(() => false)])) return;
    throw this.#lostError(child.how ?? 'does not answer');
  }

  async *run(
    { input, index, attachments }: BackendCall,
    signal: AbortSignal,
  ): AsyncGenerator<CallEvent, RowOutput, void> {
    const child = this.#requireChild();
    const isText = this.#kind === 'text';
    const [text, image] = [input as UpstreamTextInput, input as ImageInput];
    const reader = isText ? new ModuleTextReader(text) : new ModuleImageReader(image, index);
    const request = isText ? textRequest(text, index, attachments) : imageRequest(image, index);
    const call = child.call({ request, maxBytes: reader.maxBytes });
    let hasEnded = false;
    try {
      for await (const message of this.#messages(child, call, signal)) {
        hasEnded = message.type !== 'yielded';
        if (message.type === 'threw') throw this.#errorOf(message);
        if (message.type === 'returned') return this.#read(() => reader.end(deserialize(message.value)));
        yield* this.#read(() => [...reader.read(deserialize(message.value))]);
      }
      throw this.#lostError(child.how ?? 'ended without a result');
    } finally {
      if (!hasEnded) await this.#abandon(child, call);
      child.forget(call);
    }
  }

  async close(isForced: boolean): Promise<void> {
    const child = this.#child;
    if (isForced) child?.kill();
    else await child?.close();
  }

  #readInfo(info: unknown): BackendInfo {
    const { card: given, slots } = info as { card: unknown; slots: unknown };
    const card = readCard(given, { id: this.#options.model, created: this.#created });
    this.#kind = card.kind;
    return { card, slots: readSlots(slots) };
  }

  #requireChild(): ModuleChild {
    const child = this.#child;
    if (child !== undefined && child.how === undefined) return child;
    throw this.#lostError(child?.how ?? 'is not running');
  }

  /** Yields a call's messages until it is aborted or its process ends. */
  async *#messages(child: ModuleChild, call: number, signal: AbortSignal): AsyncGenerator<CallMessage, void> {
    for (;;) {
      const message = await child.nextOf(call, { signal });
      if (message === undefined || signal.aborted) return;
      yield message;
      await this.#limitRate();
      child.send({ type: 'taken', call });
    }
  }

  /** Aborts a call and drains it to its end. Kills the process if the call stays silent without ending. */
  async #abandon(child: ModuleChild, call: number): Promise<void> {
    child.send({ type: 'abort', call });
    for (;;) {
      const message = await child.nextOf(call, this.#options);
      if (message === undefined && child.how === undefined) child.kill('it continued after its signal was aborted');
      if (message?.type !== 'yielded') return;
    }
  }

  /** Delays if the rate limit is reached. */
  async #limitRate(): Promise<void> {
    this.#window ??= delay(windowMs).then(() => {
      this.#window = undefined;
      this.#readInWindow = 0;
    });
    if (++this.#readInWindow > maxPerWindow) await this.#window;
  }

  #read<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      throw this.#lostError(`broke its contract: ${(error as Error).message}`);
    }
  }

  #errorOf({ isRefusal, message, stack }: { isRefusal: boolean; message: string; stack: string }): DarkroomError {
    if (isRefusal && message !== '')
      return new DarkroomError('invalid_request', 'executor.module', wellFormed(message.slice(0, maxRefusalLength)));
    const error = this.#lostError(`threw: ${message}`);
    // The module's stack shows where it failed.
    if (stack !== '') error.stack = stack;
    return error;
  }

  #lostError(why: string): DarkroomError {
    return new DarkroomError('unavailable', 'executor.module', `${this.name} ${why}`);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
