import { basename, isAbsolute } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { DarkroomError, type ModelCard, type RowOutput } from '@darkroom/core';
import { type PictureInput, seedOfPicture, type UpstreamTextInput } from '@darkroom/kinds';
import type { Call, Caller, CallerFacts, Said } from '../calls/caller.ts';
import { seedOf } from '../upstream/text-pieces.ts';
import { wellFormed } from '../upstream/upstream-error.ts';
import { findModule } from './find-module.ts';
import { type CallMessage, ModuleChild } from './module-child.ts';
import type { OwnPictureRequest, OwnTextRequest } from './own-executor.ts';
import { PictureReader } from './picture-reader.ts';
import { readCard, readSlots } from './read-card.ts';
import { TextReader } from './text-reader.ts';

export interface ModuleCallerOptions {
  /** As EXECUTOR has it: a path that begins with . or /, or the name of a package. */
  module: string;
  /** As it is served here. */
  model: string;
  /** How long a call that is aborted may go on, and be silent, ms. */
  patienceMs: number;
  /** Of its process; that of this one if absent. */
  environment?: Record<string, string | undefined> | undefined;
}

/** What all calls together may say in such a time is bounded, so that one that floods does not keep the worker from its other work. */
const turnMs = 10;
const mostPerTurn = 50;
const longestRefusal = 300;

/** A module in a process of its own. */
export class ModuleCaller implements Caller {
  readonly name: string;
  readonly #options: ModuleCallerOptions;
  /** Seconds since the epoch. */
  readonly #created = Math.floor(Date.now() / 1000);
  #child: ModuleChild | undefined;
  #kind: ModelCard['kind'] | undefined;
  #nextCall = 0;
  #turn: Promise<void> | undefined;
  #readInTurn = 0;

  constructor(options: ModuleCallerOptions) {
    this.name = options.module;
    this.#options = options;
  }

  /** Of the module's process; undefined while there is none. */
  get pid(): number | undefined {
    return this.#child?.how === undefined ? this.#child?.pid : undefined;
  }

  async describe(signal: AbortSignal): Promise<CallerFacts> {
    // One that was killed has to be gone, with what it held of a device.
    await Promise.race([this.#child?.ended, aborted(signal)]);
    if (signal.aborted) throw this.#unfit('its last process cannot be ended');
    const { model, environment } = this.#options;
    const child = new ModuleChild({ specifier: await this.#find(), model, environment });
    this.#child = child;
    try {
      return await this.#meet(child, signal);
    } catch (error) {
      child.kill();
      throw error;
    }
  }

  async check(signal: AbortSignal): Promise<void> {
    const child = this.#alive();
    if (await Promise.race([child.ping(), aborted(signal).then(() => false)])) return;
    throw this.#lost(child.how ?? 'does not answer');
  }

  async *run({ input, index }: Call, signal: AbortSignal): AsyncGenerator<Said, RowOutput, void> {
    const child = this.#alive();
    const call = this.#nextCall++;
    const isText = this.#kind === 'text';
    const [text, picture] = [input as UpstreamTextInput, input as PictureInput];
    const reader = isText ? new TextReader(text) : new PictureReader(picture, index);
    const request = isText ? textRequest(text, index) : pictureRequest(picture, index);
    child.open(call);
    child.send({ type: 'run', call, request, most: reader.most });
    let isOver = false;
    try {
      for await (const message of this.#hear(child, call, signal)) {
        isOver = message.type !== 'said';
        if (message.type === 'threw') throw this.#thrown(message);
        if (message.type === 'returned') return this.#read(() => reader.end(deserialize(message.value)));
        yield* this.#read(() => [...reader.read(deserialize(message.value))]);
      }
      throw this.#lost(child.how ?? 'was not heard to its end');
    } finally {
      if (!isOver) await this.#abandon(child, call);
      child.forget(call);
    }
  }

  async rest(isHurried: boolean): Promise<void> {
    const child = this.#child;
    if (isHurried) child?.kill();
    else await child?.close();
  }

  /** What to import: the URL of a file, or the name of a package. */
  async #find(): Promise<string> {
    const found = await findModule(this.#options.module);
    if (found === undefined) throw this.#unfit('expected the path of a module, and there is no such file');
    return found;
  }

  async #meet(child: ModuleChild, signal: AbortSignal): Promise<CallerFacts> {
    const message = await Promise.race([child.started, aborted(signal).then(() => 'late' as const)]);
    if (message === 'late')
      throw this.#unfit(`createExecutor is not done in time, which is ten times ENGINE_TIMEOUT_S`);
    if (message === undefined) throw this.#unfit('it ended before createExecutor was done', await child.ended);
    if (message.type === 'unfit') throw this.#unfit(message.message, message.thrown);
    try {
      const card = readCard(deserialize(message.card), { id: this.#options.model, created: this.#created });
      this.#kind = card.kind;
      return { card, slots: readSlots(deserialize(message.slots)) };
    } catch (error) {
      throw this.#unfit((error as Error).message);
    }
  }

  #alive(): ModuleChild {
    const child = this.#child;
    if (child !== undefined && child.how === undefined) return child;
    throw this.#lost(child?.how ?? 'is not running');
  }

  /** What a call says, until it is aborted or its process has ended. */
  async *#hear(child: ModuleChild, call: number, signal: AbortSignal): AsyncGenerator<CallMessage, void> {
    for (;;) {
      const message = await child.next(call, { signal });
      if (message === undefined || signal.aborted) return;
      yield message;
      await this.#takeTurn();
      child.send({ type: 'taken', call });
    }
  }

  /** Has a call end that nobody reads any more. One that never does takes the process with it. */
  async #abandon(child: ModuleChild, call: number): Promise<void> {
    child.send({ type: 'abort', call });
    for (;;) {
      const message = await child.next(call, this.#options);
      if (message === undefined && child.how === undefined) child.dismiss('it went on after its signal was aborted');
      if (message?.type !== 'said') return;
    }
  }

  /** Waits where much was said already. */
  async #takeTurn(): Promise<void> {
    this.#turn ??= delay(turnMs).then(() => {
      this.#turn = undefined;
      this.#readInTurn = 0;
    });
    if (++this.#readInTurn > mostPerTurn) await this.#turn;
  }

  #read<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      throw this.#lost(`broke its contract: ${(error as Error).message}`);
    }
  }

  #thrown({ isRefusal, message }: { isRefusal: boolean; message: string }): DarkroomError {
    if (isRefusal && message !== '')
      return new DarkroomError('invalid_request', 'executor.module', wellFormed(message.slice(0, longestRefusal)));
    return this.#lost(`threw: ${message}`);
  }

  #lost(why: string): DarkroomError {
    return new DarkroomError('unavailable', 'executor.module', `${this.name} ${why}`);
  }

  /** It cannot start. Where the module lies, and its own words, are for the log only, which errors of ours with another code are not. */
  #unfit(why: string, thrown = ''): DarkroomError {
    const { module } = this.#options;
    if (thrown !== '')
      return new DarkroomError('internal', 'executor.start', `EXECUTOR is ${module}: ${why}: ${thrown}`);
    const name = isAbsolute(module) ? `…/${basename(module)}` : module;
    return new DarkroomError('model_unsupported', 'executor.start', `EXECUTOR is ${name}: ${why}`);
  }
}

function textRequest(given: UpstreamTextInput, index: number): OwnTextRequest {
  const { asked, maxTokens, n, logprobs } = given;
  const input = { asked, maxTokens, n, ...(logprobs !== undefined && { logprobs }) };
  return { index, seed: seedOf(given, index), input };
}

function pictureRequest(input: PictureInput, index: number): OwnPictureRequest {
  return { index, seed: seedOfPicture(input.seed, index), input };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
