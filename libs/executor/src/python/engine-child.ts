import { fileURLToPath } from 'node:url';
import { Child, DarkroomError } from '@darkroom/core';
import { type ModuleSetting, startError } from '../module/find-module.ts';
import { wellFormed } from '../upstream/http/upstream-error.ts';
import {
  type EngineError,
  messageFromEngine,
  type MessageFromEngine,
  type MessageToEngine,
  type MethodName,
  type ParametersOf,
  protocolVersion,
  type ResultOf,
  results,
} from './engine-protocol.ts';

export interface EngineChildOptions {
  /** Path of the module. */
  module: string;
  model: string;
  /** Program that runs it. */
  python: string;
  maxDataBytes?: number | undefined;
  environment?: Record<string, string | undefined> | undefined;
}

type Ready = Extract<MessageFromEngine, { type: 'ready' }>;

interface PendingCall {
  readonly method: MethodName;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

const closeTimeoutMs = 10_000;
const maxRefusalLength = 300;

// The same from `src` and from `dist`.
const entry = fileURLToPath(new URL('../../python/darkroom_engine/__main__.py', import.meta.url));

/** The process of an engine in Python, from start to exit. It is killed if it violates the protocol. */
export class EngineChild extends Child<MessageToEngine, MessageFromEngine> {
  readonly #name: string;
  readonly #calls = new Map<number, PendingCall>();
  #nextCall = 0;

  constructor({ module, model, python, ...options }: EngineChildOptions) {
    super({ ...options, entry, interpreter: python, schema: messageFromEngine });
    this.#name = module;
    this.send({ type: 'start', version: protocolVersion, module, model });
    void this.ended.then(({ how }) => {
      for (const { reject } of this.#calls.values()) reject(this.#lost(how));
      this.#calls.clear();
    });
  }

  /**
   * Resolves once the engine has started, with what `read` makes of its report. Otherwise kills it.
   *
   * @throws DarkroomError naming the setting and the reason, also if `read` throws.
   */
  async ready<Info>(
    setting: ModuleSetting,
    { signal, limit, read }: { signal: AbortSignal; limit: string; read: (message: Ready) => Info },
  ): Promise<Info> {
    const message = await this.next(signal);
    try {
      if (message?.type === 'ready') return read(message);
    } catch (error) {
      this.kill();
      throw startError(setting, (error as Error).message);
    }
    this.kill();
    if (message?.type === 'unfit') throw startError(setting, message.message, message.thrown);
    if (this.how === undefined) throw startError(setting, `create_engine did not finish within ${limit}`);
    throw startError(setting, 'it exited before create_engine finished', this.how);
  }

  /**
   * Calls a method of the engine.
   *
   * @throws DarkroomError `unavailable` if the method raises an error or the process ends, `invalid_request` or
   * `out_of_memory` if the error says so.
   */
  call<Name extends MethodName>(method: Name, parameters: ParametersOf<Name>): Promise<ResultOf<Name>> {
    return new Promise((resolve, reject) => {
      if (this.how !== undefined) return reject(this.#lost(this.how));
      const call = this.#nextCall++;
      this.#calls.set(call, { method, resolve: resolve as (value: unknown) => void, reject });
      this.send({ ...parameters, type: method, call } as MessageToEngine);
    });
  }

  /** Converts an error of the engine. The client sees the message of `invalid_request` only. */
  errorOf({ code, message, stack }: EngineError): DarkroomError {
    if (code === 'invalid_request' && message !== '')
      return new DarkroomError(code, 'executor.engine', wellFormed(message.slice(0, maxRefusalLength)));
    const error = new DarkroomError('unavailable', 'executor.engine', `${this.#name} raised ${wellFormed(message)}`);
    error.stack = stack;
    if (code !== 'out_of_memory') return error;
    return new DarkroomError(code, 'executor.engine', 'the engine ran out of memory', error);
  }

  /** Returns the error of a value that violates the contract. */
  violation(reason: string): DarkroomError {
    return new DarkroomError('unavailable', 'executor.engine', `${this.#name} broke its contract: ${reason}`);
  }

  /** Shuts the process down in order; kills it on timeout. */
  close(): Promise<void> {
    return this.stop({ type: 'close' }, closeTimeoutMs);
  }

  protected override receive(message: MessageFromEngine): void {
    if (message.type !== 'reply' && message.type !== 'error') return;
    const pending = this.#calls.get(message.call);
    this.#calls.delete(message.call);
    if (pending === undefined) return this.kill('it replied to a call that has ended or never existed');
    if (message.type === 'error') return pending.reject(this.errorOf(message));
    const parsed = results[pending.method].safeParse(message.value);
    if (parsed.success) return pending.resolve(parsed.data);
    this.#calls.set(message.call, pending);
    this.kill(`its reply to ${pending.method} has another form than the protocol's`);
  }

  #lost(how: string): DarkroomError {
    return new DarkroomError('unavailable', 'executor.engine', `${this.#name} ${how}`);
  }
}
