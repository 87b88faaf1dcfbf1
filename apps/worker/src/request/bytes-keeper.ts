/**
 * Stores the bytes of requests in the blob store (`BYTES_URL`) and reads their inputs from there. While it is
 * unavailable, outputs wait until their request's deadline and requests wait for their inputs; previews and checkpoints
 * are skipped.
 */
import { DarkroomError, retry, withTimeLimit } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import {
  type Delivery,
  encodeStoredValue,
  type StoredValue,
  storeBytes,
  readAttachments,
  type StoreConnection,
} from '@darkroom/store';

const pauseMs = 500;
/** A store that does not answer within this time is unavailable. */
const outputTimeoutMs = 10_000;
/** Timeout for previews and checkpoints, which are optional. */
const workTimeoutMs = 2000;

interface StoreOutputOptions {
  index: number;
  data: Uint8Array;
  contentType: string;
  /** Deadline by `performance.now()`. */
  untilMs: number;
  /** Aborted when the output is no longer wanted from this worker. */
  signal: AbortSignal;
}

export class BytesKeeper {
  readonly #store: StoreConnection;
  readonly #log: Logger;
  readonly #stopping = new AbortController();
  /** Previews and checkpoints in progress, as `<kind> <token>`: at most one of a kind per request. */
  readonly #inProgress = new Set<string>();
  #isUnavailable = false;
  /** Time of the last failed try, by `performance.now()`. */
  #failedAtMs = -Infinity;

  constructor({ store, log }: { store: StoreConnection; log: Logger }) {
    this.#store = store;
    this.#log = log;
  }

  /** True while the blob store is unavailable and outputs wait here, so that no slots should be released. */
  get isUnavailable(): boolean {
    return this.#isUnavailable;
  }

  /** Stops waiting for an unavailable store. */
  stop(): void {
    this.#stopping.abort();
  }

  /**
   * Stores an output. Returns where it is stored; undefined if it is no longer wanted or waited for.
   *
   * @throws the error of the last try, after `untilMs`.
   */
  async storeOutput(delivery: Delivery, options: StoreOutputOptions): Promise<StoredValue | undefined> {
    const { index, data, contentType, untilMs, signal } = options;
    // The request's log contains a text anyway.
    if (this.#store.bytes === undefined || contentType.startsWith('text/')) return data;
    const what = { folder: 'outputs', name: `${index}`, data } as const;
    return this.#retry((timeoutMs) => this.#put(delivery, what, { signal, timeoutMs }), { untilMs, signal });
  }

  /**
   * Reads the attachments of a request that still exist; undefined if they are no longer wanted or waited for.
   *
   * @param signal aborted when they are no longer wanted from this worker, at the deadline at the latest.
   * @throws an error that means that they can never be read here.
   */
  async readAttachments(id: string, signal: AbortSignal): Promise<ReadonlyMap<string, Uint8Array> | undefined> {
    const read = (): Promise<ReadonlyMap<string, Uint8Array>> => readAttachments(this.#store, id);
    // Without a configured blob store, waiting does not help: another worker may have one.
    if (this.#store.bytes === undefined) return read();
    return this.#retry((timeoutMs) => this.#try(read, { signal, timeoutMs }), { untilMs: Infinity, signal });
  }

  /**
   * Stores a preview or checkpoint. Returns what Redis stores of it; undefined if it was skipped, because the store is
   * unavailable or another one of its kind is in progress.
   */
  async storeWork(
    delivery: Delivery,
    { kind, name, data }: { kind: 'preview' | 'checkpoint'; name: string; data: Uint8Array },
  ): Promise<Uint8Array | undefined> {
    if (this.#store.bytes === undefined) return data;
    const key = `${kind} ${delivery.token}`;
    if (this.#inProgress.has(key) || (this.#isUnavailable && performance.now() - this.#failedAtMs < pauseMs))
      return undefined;
    this.#inProgress.add(key);
    const { signal } = new AbortController();
    const storing = this.#put(
      delivery,
      { folder: 'work', name: `${kind}.${name}`, data },
      { signal, timeoutMs: workTimeoutMs },
    );
    return storing
      .then(
        (stored) => encodeStoredValue(stored),
        () => undefined,
      )
      .finally(() => this.#inProgress.delete(key));
  }

  #put(
    delivery: Delivery,
    what: Parameters<typeof storeBytes>[2],
    limits: { signal: AbortSignal; timeoutMs: number },
  ): Promise<StoredValue> {
    return this.#try(() => storeBytes(this.#store, delivery, what), limits);
  }

  /** Retries while the store is unavailable; returns undefined when it is no longer waited for. */
  async #retry<Result>(
    act: (timeoutMs: number) => Promise<Result>,
    { untilMs, signal }: { untilMs: number; signal: AbortSignal },
  ): Promise<Result | undefined> {
    const stopping = this.#stopping.signal;
    const isOver = (): boolean => signal.aborted || stopping.aborted;
    const attempt = (): Promise<Result> => act(Math.max(1, Math.min(outputTimeoutMs, untilMs - performance.now())));
    try {
      return await retry(attempt, {
        signals: [signal, stopping],
        pauseMs: (error) =>
          isOver() || !isUnavailableError(error) || performance.now() >= untilMs ? undefined : pauseMs,
      });
    } catch (error) {
      if (isOver()) return undefined;
      throw error;
    }
  }

  /** Tries once, and records whether the store is available. */
  async #try<Result>(
    act: () => Promise<Result>,
    { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
  ): Promise<Result> {
    try {
      const result = await withTimeLimit(timeoutMs, signal, (both) => Promise.race([act(), aborted(both)]));
      if (this.#isUnavailable) this.#log.info('blob store available again');
      this.#isUnavailable = false;
      return result;
    } catch (error) {
      if (signal.aborted || !isUnavailableError(error)) throw error;
      if (!this.#isUnavailable) this.#log.warn({ err: error }, 'blob store unavailable: outputs and inputs wait');
      this.#isUnavailable = true;
      this.#failedAtMs = performance.now();
      throw error;
    }
  }
}

/** Returns true if the store could not be reached or did not answer in time. */
function isUnavailableError(error: unknown): boolean {
  if (error instanceof DOMException) return error.name === 'TimeoutError';
  return DarkroomError.isInstance(error) && error.code === 'unavailable';
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}
