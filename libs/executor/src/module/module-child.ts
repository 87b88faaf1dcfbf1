import { fileURLToPath } from 'node:url';
import { deserialize } from 'node:v8';
import { Child, type WaitOptions, WakeSignal } from '@darkroom/core';
import { type ModuleSetting, startError } from './find-module.ts';
import {
  type CallMessage,
  maxUnread,
  messageFromModule,
  type MessageFromModule,
  type MessageToModule,
  type ModuleExport,
} from './module-message.ts';

export interface ModuleChildOptions {
  /** The URL of a file, or the name of a package. */
  specifier: string;
  model: string;
  exportName: ModuleExport;
  /** Environment of the module's process; default: this process's own. */
  environment?: Record<string, string | undefined> | undefined;
}

interface ReadyOptions<Info> {
  signal: AbortSignal;
  /** The time limit that `signal` has, for the error message. */
  limit: string;
  read: (info: unknown) => Info;
}

/** A call's unread messages. */
interface Mailbox {
  readonly messages: CallMessage[];
  readonly changed: WakeSignal;
}

/** Max duration of an orderly shutdown. */
const closeTimeoutMs = 10_000;

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/module' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/child/module-process.js`, import.meta.url));

/** A module's process, from start to exit. It is killed if it violates the message protocol. */
export class ModuleChild extends Child<MessageToModule, MessageFromModule> {
  readonly #exportName: ModuleExport;
  readonly #mailboxes = new Map<number, Mailbox>();
  /** Abandoned calls that have not ended. */
  readonly #abandoned = new Set<number>();
  #pings: ((isAlive: boolean) => void)[] = [];
  #nextCall = 0;
  #callsAtEnd: number | undefined;

  constructor({ environment, ...start }: ModuleChildOptions) {
    super({ entry, environment, schema: messageFromModule });
    this.#exportName = start.exportName;
    this.send({ type: 'start', ...start });
    void this.ended.then(() => {
      this.#callsAtEnd ??= this.#mailboxes.size;
      this.#settlePings(false);
      for (const { changed } of this.#mailboxes.values()) changed.wake();
    });
  }

  /**
   * Resolves with what the module offers once it has started, as validated by `read`. Otherwise kills it.
   *
   * @throws DarkroomError naming the setting and the reason, also if `read` throws.
   */
  async ready<Info>(setting: ModuleSetting, { signal, limit, read }: ReadyOptions<Info>): Promise<Info> {
    let message = await this.next(signal);
    while (message !== undefined && message.type !== 'ready' && message.type !== 'unfit')
      message = await this.next(signal);
    try {
      if (message?.type === 'ready') return read(deserialize(message.info));
    } catch (error) {
      this.kill();
      throw startError(setting, (error as Error).message);
    }
    this.kill();
    if (message?.type === 'unfit') throw startError(setting, message.message, message.thrown);
    const name = this.#exportName;
    if (this.how === undefined) throw startError(setting, `${name} did not finish within ${limit}`);
    throw startError(setting, `it exited before ${name} finished`, this.how);
  }

  /** Number of open calls when the process was killed or ended. */
  get callsAtEnd(): number {
    return this.#callsAtEnd ?? 0;
  }

  override kill(reason?: string): void {
    this.#callsAtEnd ??= this.#mailboxes.size;
    super.kill(reason);
  }

  /** Starts a call and returns its number, unique within this process. */
  call(run: Pick<Extract<MessageToModule, { type: 'run' }>, 'request' | 'maxBytes'>): number {
    const call = this.#nextCall++;
    this.#mailboxes.set(call, { messages: [], changed: new WakeSignal() });
    this.send({ type: 'run', call, ...run });
    return call;
  }

  /** Forgets a call: a later message about it violates the protocol. */
  forget(call: number): void {
    this.#mailboxes.delete(call);
  }

  /** Aborts a call, forgets it and ignores its later messages. */
  abandon(call: number): void {
    const last = this.#mailboxes.get(call)?.messages.at(-1);
    this.forget(call);
    if (last !== undefined && last.type !== 'yielded') return;
    this.#abandoned.add(call);
    this.send({ type: 'abort', call });
  }

  /**
   * Resolves with the call's next message; undefined on abort, after `timeoutMs` of silence, or when the process has
   * ended.
   */
  async nextOf(call: number, wait: WaitOptions): Promise<CallMessage | undefined> {
    const mailbox = this.#mailboxes.get(call);
    if (mailbox === undefined) return undefined;
    while (wait.signal?.aborted !== true) {
      const message = mailbox.messages.shift();
      if (message !== undefined || this.how !== undefined) return message;
      if (!(await mailbox.changed.wait(wait))) return undefined;
    }
    return undefined;
  }

  /** Resolves true on an answer, false if the process ends; never settles while it hangs. */
  ping(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#pings.push(resolve);
      if (this.#pings.length === 1) this.send({ type: 'ping' });
    });
  }

  /** Shuts the process down in order; kills it on timeout. */
  close(): Promise<void> {
    return this.stop({ type: 'close' }, closeTimeoutMs);
  }

  protected override receive(message: MessageFromModule): void {
    if (message.type === 'pong') this.#settlePings(true);
    else if (message.type === 'dying') this.explainEnd(message.message);
    else if ('call' in message) this.#deliver(message);
  }

  #deliver(message: CallMessage): void {
    if (this.#abandoned.has(message.call)) {
      if (message.type !== 'yielded') this.#abandoned.delete(message.call);
      return;
    }
    const mailbox = this.#mailboxes.get(message.call);
    if (mailbox === undefined) return this.kill('it sent a message for a call that has ended or never existed');
    if (mailbox.messages.length > maxUnread) return this.kill('it sent more messages than were read');
    mailbox.messages.push(message);
    mailbox.changed.wake();
  }

  #settlePings(isAlive: boolean): void {
    for (const resolve of this.#pings.splice(0)) resolve(isAlive);
  }
}
