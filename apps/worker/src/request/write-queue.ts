/**
 * All that a worker writes, in the order in which it was said. What gathers while a call to Redis is under way goes out with the
 * next one, so a step of many requests costs one call; pieces of text wait a little for more of them, and of the progress and the
 * checkpoints beside them only the newest are written, never before the text. While Redis is away what was said waits here; it is bounded, since no new work comes, and given up at its request's deadline.
 */
import { setImmediate } from 'node:timers/promises';
import {
  type RequestWrite,
  type StoreConnection,
  untilAnswered,
  writeBatch,
  type WorkerIdentity,
  type WriteOutcome,
} from '@darkroom/store';
import { joinFacts } from './join-facts.ts';

export interface WriteQueueOptions {
  store: StoreConnection;
  identity: WorkerIdentity;
  /** Text goes out so long after the last call at the earliest, unless something else does, ms. */
  textIntervalMs?: number;
}

interface Entry {
  write: RequestWrite;
  /** When it is of no use any more, by `performance.now()`. */
  untilMs: number;
  outcome: Promise<WriteOutcome>;
  resolve: (outcome: Promise<WriteOutcome>) => void;
}

/** What is written, whatever delivery it is of. */
export type WriteBody = RequestWrite extends infer Write
  ? Write extends RequestWrite
    ? Omit<Write, 'delivery'>
    : never
  : never;

type Delta = Extract<RequestWrite, { type: 'delta' }>;

/** One call holds up all others of Redis for as long as it takes. */
const mostWrites = 128;
const mostBytes = 1_048_576;

export class WriteQueue {
  readonly #options: Required<WriteQueueOptions>;
  #entries: Entry[] = [];
  #batch = 0;
  #isSending = false;
  #sentAtMs = -Infinity;
  /** Ends a wait for more text. */
  #hurry = (): void => {};

  constructor({ textIntervalMs = 50, ...options }: WriteQueueOptions) {
    this.#options = { ...options, textIntervalMs };
  }

  /** Resolves when it is written, or refused. Rejects with what the last try threw: after `untilMs`, or when Redis refuses it. */
  push(write: RequestWrite, untilMs: number): Promise<WriteOutcome> {
    const { outcome } = this.#join(write) ?? this.#append(write, untilMs);
    if (!this.#isSending) void this.#send();
    return outcome;
  }

  #append(write: RequestWrite, untilMs: number): Entry {
    let resolve!: Entry['resolve'];
    const outcome = new Promise<WriteOutcome>((settle) => (resolve = settle));
    const entry = { write, untilMs, outcome, resolve };
    this.#entries.push(entry);
    if (outputOfText(write) === undefined) this.#hurry();
    return entry;
  }

  /** Adds to what waits already. */
  #join(write: RequestWrite): Entry | undefined {
    if (write.type === 'delta') return this.#joinText(write);
    const output = outputOfText(write);
    const { type } = write;
    if ((type !== 'progress' && type !== 'checkpoint') || output === undefined) return undefined;
    // Only how far it is by now is worth a call.
    const entry = this.#entries.find(
      ({ write: other }) => isOfSame(other, write) && other.type === type && outputOfText(other) === output,
    );
    if (entry === undefined) return undefined;
    this.#entries = [...this.#entries.filter((other) => other !== entry), entry];
    entry.write = write;
    return entry;
  }

  /** Where nothing of the same request stands between, but other texts, how far they are, and where they would go on. */
  #joinText(write: Delta): Entry | undefined {
    const entry = this.#entries.findLast(({ write: other }) => {
      const isSameText = 'index' in other && other.index === write.index && other.type !== 'checkpoint';
      return isOfSame(other, write) && (isSameText || outputOfText(other) === undefined);
    });
    if (entry?.write.type !== 'delta') return undefined;
    const { offset, text, facts: before } = entry.write;
    const facts = joinFacts(before, write.facts);
    entry.write = { ...write, offset, text: text + write.text, ...(facts && { facts }) };
    return entry;
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    // What is said in one go goes out together, also where it was encoded.
    await setImmediate();
    while (this.#entries.length > 0) {
      await this.#waitForText();
      this.#sentAtMs = performance.now();
      await this.#sendBatch(this.#take());
    }
    // No await between the last look and here, so nothing can be pushed between.
    this.#isSending = false;
  }

  #take(): Entry[] {
    let bytes = 0;
    let count = 0;
    for (const { write } of this.#entries) {
      bytes += bytesOf(write);
      if (count > 0 && (bytes > mostBytes || count === mostWrites)) break;
      count += 1;
    }
    return this.#entries.splice(0, count);
  }

  async #sendBatch(entries: readonly Entry[]): Promise<void> {
    const { store, identity } = this.#options;
    const batch = ++this.#batch;
    const untilMs = Math.max(...entries.map((entry) => entry.untilMs));
    const writes = entries.map(({ write }) => write);
    const writing = untilAnswered(store, { untilMs }, () => writeBatch(store, identity, writes, { batch }));
    for (const [index, { resolve }] of entries.entries()) resolve(writing.then((outcomes) => outcomes[index]!));
    await writing.catch(() => {});
  }

  async #waitForText(): Promise<void> {
    const leftMs = this.#sentAtMs + this.#options.textIntervalMs - performance.now();
    if (leftMs <= 0 || this.#entries.some(({ write }) => outputOfText(write) === undefined)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, leftMs);
      this.#hurry = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** About: text is counted in UTF-16 units. */
function bytesOf(write: RequestWrite): number {
  if ('data' in write) return write.data.byteLength;
  if (!('text' in write)) return 0;
  const facts = Object.values(write.facts ?? {}).map((fact) => (typeof fact === 'string' ? fact.length : 0));
  return facts.reduce((sum, units) => sum + units, write.text.length);
}

function isOfSame(one: RequestWrite, other: RequestWrite): boolean {
  return one.delivery.token === other.delivery.token;
}

/** The output of what can wait for more of its text: a piece, how far it is, where it would go on, and what only makes its log shorter. */
function outputOfText(write: RequestWrite): number | undefined {
  if (write.type === 'delta' || (write.type === 'snapshot' && write.isWhole === true)) return write.index;
  if (write.type === 'checkpoint' && write.isOfText === true) return write.index;
  return write.type === 'progress' && write.isOfText === true ? write.progress.index : undefined;
}
