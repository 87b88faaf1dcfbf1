/**
 * Puts the bytes of requests where this system keeps them (`BYTES_URL`). While that is away, outputs wait until their request's
 * deadline and go on then; previews and checkpoints, which can be done without, are left out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@darkroom/service';
import { type Delivery, keepBytes, type StoreConnection } from '@darkroom/store';

const pauseMs = 500;

export class BytesKeeper {
  readonly #store: StoreConnection;
  readonly #log: Logger;
  #isAway = false;
  /** By `performance.now()`. */
  #triedAtMs = -Infinity;

  constructor({ store, log }: { store: StoreConnection; log: Logger }) {
    this.#store = store;
    this.#log = log;
  }

  /** Outputs wait here: no more of them are to come than there is room for. */
  get isAway(): boolean {
    return this.#isAway;
  }

  /**
   * What Redis is to hold of an output. `untilMs`: by `performance.now()`.
   *
   * @throws what the last try threw, after `untilMs`, or when the store is closed.
   */
  async keepOutput(delivery: Delivery, { index, data, untilMs }: { index: number; data: Uint8Array; untilMs: number }) {
    for (;;) {
      try {
        return await this.#keep(delivery, { folder: 'outputs', name: `${index}`, data });
      } catch (error) {
        if (this.#store.isClosed || performance.now() >= untilMs) throw error;
      }
      await delay(pauseMs);
    }
  }

  /** What Redis is to hold of something that is of use while its request runs; undefined: it is done without. */
  async keepWork(delivery: Delivery, name: string, data: Uint8Array): Promise<Uint8Array | undefined> {
    if (this.#isAway && performance.now() - this.#triedAtMs < pauseMs) return undefined;
    return this.#keep(delivery, { folder: 'work', name, data }).catch(() => undefined);
  }

  async #keep(delivery: Delivery, what: Parameters<typeof keepBytes>[2]): Promise<Uint8Array> {
    this.#triedAtMs = performance.now();
    try {
      const held = await keepBytes(this.#store, delivery, what);
      if (this.#isAway) this.#log.info('where bytes are kept is back');
      this.#isAway = false;
      return held;
    } catch (error) {
      if (!this.#isAway) this.#log.warn({ err: error }, 'where bytes are kept is away: outputs wait');
      this.#isAway = true;
      throw error;
    }
  }
}
