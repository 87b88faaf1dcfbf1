/**
 * Batches all writes of a worker, in order: writes queued during a call to Redis go out with the next call. Text chunks
 * wait briefly to be merged; only the latest progress and checkpoint of a text are written, after the text they cover.
 * While Redis is unavailable, writes wait until their deadline; the queue is bounded, since no new requests arrive.
 */
import { setImmediate } from 'node:timers/promises';
import { WakeSignal, itemAt, nonEmpty, type NonEmpty } from '@darkroom/core';
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
  /** Returns the worker's current identity. */
  getIdentity: () => WorkerIdentity;
  /** Minimum interval between the last call and a call that writes only text, ms. */
  textIntervalMs?: number;
}

interface Entry {
  write: RequestWrite;
  /** Identity at the time of the push: the worker may move to another shard before the write is sent. */
  identity: WorkerIdentity;
  /** Time by `performance.now()` after which the write is useless. */
  untilMs: number;
  outcome: Promise<WriteOutcome>;
  resolve: (outcome: Promise<WriteOutcome>) => void;
}

/** A write without its delivery. */
export type WriteBody = RequestWrite extends infer Write
  ? Write extends RequestWrite
    ? Omit<Write, 'delivery'>
    : never
  : never;

type Delta = Extract<RequestWrite, { type: 'delta' }>;

/** Limits per call: its script blocks all other Redis clients while it runs. */
const maxWritesPerCall = 128;
const maxBytesPerCall = 1_048_576;

export class WriteQueue {
  readonly #options: Required<WriteQueueOptions>;
  #entries: Entry[] = [];
  #batch = 0;
  #isSending = false;
  #sentAtMs = -Infinity;
  /** Ends the wait for more text. */
  readonly #hasUrgent = new WakeSignal();

  constructor({ textIntervalMs = 50, ...options }: WriteQueueOptions) {
    this.#options = { ...options, textIntervalMs };
  }

  /**
   * Queues a write. Resolves when the write is stored or refused.
   *
   * @param identity the worker that has the lease. The write goes to its shard, even if the worker has moved since.
   * @throws the error of the last try, after `untilMs` or when Redis rejects the write.
   */
  push(write: RequestWrite, untilMs: number, identity = this.#options.getIdentity()): Promise<WriteOutcome> {
    const { outcome } = this.#join(write) ?? this.#append(write, identity, untilMs);
    if (!this.#isSending) void this.#send();
    return outcome;
  }

  #append(write: RequestWrite, identity: WorkerIdentity, untilMs: number): Entry {
    let resolve!: Entry['resolve'];
    const outcome = new Promise<WriteOutcome>((settle) => (resolve = settle));
    const entry = { write, identity, untilMs, outcome, resolve };
    this.#entries.push(entry);
    if (outputOfText(write) === undefined) this.#hasUrgent.wake();
    return entry;
  }

  /** Merges the write into a queued one if possible. */
  #join(write: RequestWrite): Entry | undefined {
    if (write.type === 'delta') return this.#joinText(write);
    const output = outputOfText(write);
    const { type } = write;
    if ((type !== 'progress' && type !== 'checkpoint') || output === undefined) return undefined;
    // Replace the queued one: only the latest progress or checkpoint is written.
    const entry = this.#entries.find(
      ({ write: other }) => isSameDelivery(other, write) && other.type === type && outputOfText(other) === output,
    );
    if (entry === undefined) return undefined;
    this.#entries = [...this.#entries.filter((other) => other !== entry), entry];
    entry.write = write;
    return entry;
  }

  /**
   * Appends a chunk to the last queued chunk of its output. Between the two, the request may have queued text of other
   * outputs, progress and checkpoints, but no other write.
   */
  #joinText(write: Delta): Entry | undefined {
    const entry = this.#entries.findLast(({ write: other }) => {
      const isSameText = 'index' in other && other.index === write.index && other.type !== 'checkpoint';
      return isSameDelivery(other, write) && (isSameText || outputOfText(other) === undefined);
    });
    if (entry?.write.type !== 'delta') return undefined;
    const { offset, text, facts: before } = entry.write;
    const facts = joinFacts(before, write.facts);
    entry.write = { ...write, offset, text: text + write.text, ...(facts && { facts }) };
    return entry;
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    // Wait for other writes of the same tick, including those that are encoded before they are pushed.
    await setImmediate();
    while (this.#entries.length > 0) {
      await this.#waitForText();
      this.#sentAtMs = performance.now();
      await this.#sendBatch(this.#take());
    }
    // There is no await after the loop's last check, so no write can be missed.
    this.#isSending = false;
  }

  /** Takes the writes of the next call, which all go to one shard. */
  #take(): NonEmpty<Entry> {
    let bytes = 0;
    let count = 0;
    let shard: string | undefined;
    for (const { write, identity } of this.#entries) {
      bytes += bytesOf(write);
      const isFull = bytes > maxBytesPerCall || count === maxWritesPerCall;
      if (count > 0 && (isFull || identity.shard !== shard)) break;
      ({ shard } = identity);
      count += 1;
    }
    return nonEmpty(this.#entries.splice(0, count));
  }

  async #sendBatch(entries: NonEmpty<Entry>): Promise<void> {
    const { store } = this.#options;
    const [{ identity }] = entries;
    const batch = ++this.#batch;
    const untilMs = Math.max(...entries.map((entry) => entry.untilMs));
    const writes = entries.map(({ write }) => write);
    const writing = untilAnswered(store, { untilMs }, () => writeBatch(store, identity, writes, { batch }));
    for (const [index, { resolve }] of entries.entries()) resolve(writing.then((outcomes) => itemAt(outcomes, index)));
    await writing.catch(() => {});
  }

  async #waitForText(): Promise<void> {
    const leftMs = this.#sentAtMs + this.#options.textIntervalMs - performance.now();
    if (leftMs <= 0 || this.#entries.some(({ write }) => outputOfText(write) === undefined)) return;
    this.#hasUrgent.reset();
    await this.#hasUrgent.wait({ timeoutMs: leftMs });
  }
}

/** Returns the approximate size: text counts in UTF-16 units. */
function bytesOf(write: RequestWrite): number {
  if ('data' in write) return write.data.byteLength;
  if (!('text' in write)) return 0;
  const facts = Object.values(write.facts ?? {}).map((fact) => (typeof fact === 'string' ? fact.length : 0));
  return facts.reduce((sum, units) => sum + units, write.text.length);
}

function isSameDelivery(one: RequestWrite, other: RequestWrite): boolean {
  return one.delivery.token === other.delivery.token;
}

/**
 * Returns the index of the output if the write can wait for more text: chunks, full snapshots, and the progress and
 * checkpoints of a text. Returns undefined for all other writes.
 */
function outputOfText(write: RequestWrite): number | undefined {
  if (write.type === 'delta' || (write.type === 'snapshot' && write.isWhole === true)) return write.index;
  if (write.type === 'checkpoint' && write.isOfText === true) return write.index;
  return write.type === 'progress' && write.isOfText === true ? write.progress.index : undefined;
}
