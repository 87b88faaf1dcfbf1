/**
 * Puts the bytes of requests where this system keeps them (`BYTES_URL`), and gets what they begin with from there. While that is away,
 * outputs wait until their request's deadline, requests wait with their beginning, and go on then; previews and checkpoints, which can be
 * done without, are left out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { DarkroomError, within } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import {
  type Delivery,
  encodeHeld,
  type Held,
  keepBytes,
  readAttachments,
  type StoreConnection,
} from '@darkroom/store';

const pauseMs = 500;
/** What says nothing for so long is away. */
const limitMs = 10_000;
/** Nothing waits longer for what can be done without. */
const workLimitMs = 2000;

interface KeepOutputOptions {
  index: number;
  data: Uint8Array;
  contentType: string;
  /** By `performance.now()`. */
  untilMs: number;
  /** Aborted when nobody wants it from here any more. */
  signal: AbortSignal;
}

export class BytesKeeper {
  readonly #store: StoreConnection;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  /** What is under way of each request's work: one of a kind at a time. */
  readonly #underWay = new Set<string>();
  #isAway = false;
  /** When a try failed last, by `performance.now()`. */
  #failedAtMs = -Infinity;

  constructor({ store, log }: { store: StoreConnection; log: Logger }) {
    this.#store = store;
    this.#log = log;
  }

  /** Outputs wait here: no more of them are to come than there is room for. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /** What is away now is not waited for any more. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * What is kept of an output; undefined if it is not wanted any more, or not waited for.
   *
   * @throws what the last try threw, after `untilMs`.
   */
  async keepOutput(delivery: Delivery, options: KeepOutputOptions): Promise<Held | undefined> {
    const { index, data, contentType, untilMs, signal } = options;
    // The log of its request holds a text anyway.
    if (this.#store.bytes === undefined || contentType.startsWith('text/')) return data;
    const what = { folder: 'outputs', name: `${index}`, data } as const;
    return this.#waitOut((mostMs) => this.#keep(delivery, what, { signal, mostMs }), { untilMs, signal });
  }

  /**
   * All that came with a request, as far as it is still there; undefined if it is not wanted any more, or not waited for.
   *
   * @param signal aborted when nobody wants it from here any more: the request's deadline, too, is told by that.
   * @throws what says that it can never be had from here.
   */
  async readAttachments(id: string, signal: AbortSignal): Promise<ReadonlyMap<string, Uint8Array> | undefined> {
    const read = (): Promise<ReadonlyMap<string, Uint8Array>> => readAttachments(this.#store, id);
    // Who was not told where they are need not wait: another worker may know.
    if (this.#store.bytes === undefined) return read();
    return this.#waitOut((mostMs) => this.#try(read, { signal, mostMs }), { untilMs: Infinity, signal });
  }

  /**
   * What Redis is to hold of something that is of use while its request runs; undefined: it is done without. So it is while another
   * of its kind is on its way.
   */
  async keepWork(
    delivery: Delivery,
    { kind, name, data }: { kind: 'preview' | 'checkpoint'; name: string; data: Uint8Array },
  ): Promise<Uint8Array | undefined> {
    if (this.#store.bytes === undefined) return data;
    const key = `${kind} ${delivery.token}`;
    if (this.#underWay.has(key) || (this.#isAway && performance.now() - this.#failedAtMs < pauseMs)) return undefined;
    this.#underWay.add(key);
    const { signal } = new AbortController();
    const keeping = this.#keep(
      delivery,
      { folder: 'work', name: `${kind}.${name}`, data },
      { signal, mostMs: workLimitMs },
    );
    return keeping
      .then(
        (held) => encodeHeld(held),
        () => undefined,
      )
      .finally(() => this.#underWay.delete(key));
  }

  #keep(
    delivery: Delivery,
    what: Parameters<typeof keepBytes>[2],
    limits: { signal: AbortSignal; mostMs: number },
  ): Promise<Held> {
    return this.#try(() => keepBytes(this.#store, delivery, what), limits);
  }

  /** Again and again while the store is away; undefined when that is not waited for any more. */
  async #waitOut<Result>(
    act: (mostMs: number) => Promise<Result>,
    { untilMs, signal }: { untilMs: number; signal: AbortSignal },
  ): Promise<Result | undefined> {
    for (;;) {
      const leftMs = untilMs - performance.now();
      try {
        return await act(Math.max(1, Math.min(limitMs, leftMs)));
      } catch (error) {
        if (signal.aborted || this.#stopping.signal.aborted) return undefined;
        if (!saysAway(error) || performance.now() >= untilMs) throw error;
      }
      await delay(pauseMs, undefined, { signal: AbortSignal.any([signal, this.#stopping.signal]) }).catch(() => {});
    }
  }

  /** Once, and takes note of whether the store is away. */
  async #try<Result>(
    act: () => Promise<Result>,
    { signal, mostMs }: { signal: AbortSignal; mostMs: number },
  ): Promise<Result> {
    try {
      const result = await within(mostMs, signal, (both) => Promise.race([act(), aborted(both)]));
      if (this.#isAway) this.#log.info('where bytes are kept is back');
      this.#isAway = false;
      return result;
    } catch (error) {
      if (signal.aborted || !saysAway(error)) throw error;
      if (!this.#isAway) this.#log.warn({ err: error }, 'where bytes are kept is away: outputs and beginnings wait');
      this.#isAway = true;
      this.#failedAtMs = performance.now();
      throw error;
    }
  }
}

/** It could not be reached, or said nothing for too long. */
function saysAway(error: unknown): boolean {
  if (error instanceof DOMException) return error.name === 'TimeoutError';
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
