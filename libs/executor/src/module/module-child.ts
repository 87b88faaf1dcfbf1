import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { endOfChild } from '../process/end-of-child.ts';
import { forkChild } from '../process/fork-child.ts';
import { mostUnread, type MessageFromModule, type MessageToModule } from './module-message.ts';

export interface ModuleChildOptions {
  /** The URL of a file, or the name of a package. */
  specifier: string;
  model: string;
  /** Of its process; that of this one if absent. */
  environment?: Record<string, string | undefined> | undefined;
}

/** What is said of a call. */
export type CallMessage = Extract<MessageFromModule, { call: number }>;
export type StartMessage = Extract<MessageFromModule, { type: 'ready' | 'unfit' }>;

/** What a call has said that nobody has read yet. */
interface Mailbox {
  messages: CallMessage[];
  notify: () => void;
}

/** How long it has to end in order. */
const closeTimeoutMs = 10_000;

// Always the built entry: Node runs no TypeScript, so tests of the sources need `npm run build` before them.
const builtFolder = import.meta.url.endsWith('.ts') ? '../../dist/module' : '.';
const entry = fileURLToPath(new URL(`${builtFolder}/module-process.js`, import.meta.url));

/** The process of a module: started once, ended once. Who speaks otherwise than agreed is ended. */
export class ModuleChild {
  readonly #child: ChildProcess;
  /** How it ended, once it has. */
  readonly ended: Promise<string>;
  /** What it said in the beginning; undefined if it ended before. */
  readonly started: Promise<StartMessage | undefined>;
  #settleStart!: (message: StartMessage | undefined) => void;
  readonly #calls = new Map<number, Mailbox>();
  #pings: ((isAlive: boolean) => void)[] = [];
  #lastWords: string | undefined;
  #how: string | undefined;

  constructor({ specifier, model, environment }: ModuleChildOptions) {
    this.#child = forkChild(entry, environment);
    this.started = new Promise((resolve) => (this.#settleStart = resolve));
    this.ended = endOfChild(this.#child).then((how) => this.#end(how));
    this.#child.on('message', (message: unknown) => this.#receive(message));
    this.send({ type: 'start', specifier, model });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** How it ended; undefined while it lives. */
  get how(): string | undefined {
    return this.#how;
  }

  send(message: MessageToModule): void {
    // A closed channel is seen by `ended`; the callback keeps it from being thrown here as well.
    this.#child.send(message, () => {});
  }

  open(call: number): void {
    this.#calls.set(call, { messages: [], notify: () => {} });
  }

  /** Nothing of this call is expected any more. */
  forget(call: number): void {
    this.#calls.delete(call);
  }

  /** What was said next; undefined where nothing comes: aborted, silent for longer than its patience, or its process ended. */
  async next(call: number, wait: { signal?: AbortSignal; patienceMs?: number }): Promise<CallMessage | undefined> {
    const mailbox = this.#calls.get(call);
    if (mailbox === undefined) return undefined;
    while (wait.signal?.aborted !== true) {
      const message = mailbox.messages.shift();
      if (message !== undefined || this.#how !== undefined) return message;
      if (!(await hasNews(mailbox, wait))) return undefined;
    }
    return undefined;
  }

  /** Whether it answers rather than ends; unsettled where it hangs. */
  ping(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#pings.push(resolve);
      if (this.#pings.length === 1) this.send({ type: 'ping' });
    });
  }

  /** Ends it, and says so: nothing that comes from there can be relied on. */
  dismiss(why: string): void {
    this.#lastWords ??= why;
    this.kill();
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  /** Ends it in order, if that does not take too long. */
  async close(): Promise<void> {
    this.send({ type: 'close' });
    const timer = setTimeout(() => this.kill(), closeTimeoutMs);
    await this.ended;
    clearTimeout(timer);
  }

  #receive(message: unknown): void {
    if (!isMessage(message)) return this.dismiss('it said what nobody asked it for');
    switch (message.type) {
      case 'ready':
      case 'unfit':
        return this.#settleStart(message);
      case 'pong':
        return this.#settlePings(true);
      case 'dying':
        this.#lastWords = message.message;
        return;
      case 'said':
      case 'returned':
      case 'threw':
        return this.#deliver(message);
    }
  }

  #deliver(message: CallMessage): void {
    const mailbox = this.#calls.get(message.call);
    if (mailbox === undefined) return this.dismiss('it said something of a call that is over, or never was');
    if (mailbox.messages.length > mostUnread) return this.dismiss('it said more than there was room for');
    mailbox.messages.push(message);
    mailbox.notify();
  }

  #settlePings(isAlive: boolean): void {
    for (const resolve of this.#pings.splice(0)) resolve(isAlive);
  }

  #end(how: string): string {
    this.#how = this.#lastWords === undefined ? how : `${how}: ${this.#lastWords}`;
    this.#settleStart(undefined);
    this.#settlePings(false);
    for (const { notify } of this.#calls.values()) notify();
    return this.#how;
  }
}

/** False if there were none in time; an abort is some. */
function hasNews(
  mailbox: Mailbox,
  { signal, patienceMs }: { signal?: AbortSignal; patienceMs?: number },
): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isNews: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', mailbox.notify);
      resolve(isNews);
    };
    const timer = patienceMs === undefined ? undefined : setTimeout(() => settle(false), patienceMs);
    mailbox.notify = () => settle(true);
    signal?.addEventListener('abort', mailbox.notify);
  });
}

const fieldTypes: Readonly<Record<MessageFromModule['type'], Readonly<Record<string, string>>>> = {
  ready: { card: 'bytes', slots: 'bytes' },
  unfit: { message: 'string', thrown: 'string' },
  said: { call: 'number', value: 'bytes' },
  returned: { call: 'number', value: 'bytes' },
  threw: { call: 'number', isRefusal: 'boolean', message: 'string' },
  pong: {},
  dying: { message: 'string' },
};

function isMessage(message: unknown): message is MessageFromModule {
  if (typeof message !== 'object' || message === null || !('type' in message)) return false;
  const { type } = message;
  if (typeof type !== 'string' || !Object.hasOwn(fieldTypes, type)) return false;
  return Object.entries(fieldTypes[type as MessageFromModule['type']]).every(([name, expected]) => {
    const value = (message as Record<string, unknown>)[name];
    return expected === 'bytes' ? value instanceof Uint8Array : typeof value === expected;
  });
}
