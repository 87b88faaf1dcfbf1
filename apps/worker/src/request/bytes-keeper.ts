/**
 * Puts the bytes of requests where this system keeps them (`BYTES_URL`). While that is away, outputs wait until their request's
 * deadline and go on then; previews and checkpoints, which can be done without, are left out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { within } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { type Delivery, encodeHeld, type Held, keepBytes, type StoreConnection } from '@darkroom/store';

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
    for (;;) {
      const leftMs = untilMs - performance.now();
      try {
        return await this.#keep(delivery, what, { signal, mostMs: Math.max(1, Math.min(limitMs, leftMs)) });
      } catch (error) {
        if (signal.aborted || this.#stopping.signal.aborted) return undefined;
        if (performance.now() >= untilMs) throw error;
      }
      await delay(pauseMs, undefined, { signal: AbortSignal.any([signal, this.#stopping.signal]) }).catch(() => {});
    }
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

  async #keep(
    delivery: Delivery,
    what: Parameters<typeof keepBytes>[2],
    { signal, mostMs }: { signal: AbortSignal; mostMs: number },
  ): Promise<Held> {
    try {
      const held = await within(mostMs, signal, (both) =>
        Promise.race([keepBytes(this.#store, delivery, what), aborted(both)]),
      );
      if (this.#isAway) this.#log.info('where bytes are kept is back');
      this.#isAway = false;
      return held;
    } catch (error) {
      if (signal.aborted) throw error;
      if (!this.#isAway) this.#log.warn({ err: error }, 'where bytes are kept is away: outputs wait');
      this.#isAway = true;
      this.#failedAtMs = performance.now();
      throw error;
    }
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
