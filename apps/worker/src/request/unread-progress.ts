import type { RequestWrite } from '@darkroom/store';

type ProgressWrite = Omit<Extract<RequestWrite, { type: 'progress' }>, 'delivery' | 'type'>;

/** Max. age of the progress that a new reader finds, ms. */
const maxAgeMs = 1000;

/**
 * Runs the callbacks of all requests of a worker together at the next full second: their writes then share one call to
 * Redis. Runs nothing in a second without callbacks.
 */
export class FlushTimer {
  readonly #callbacks = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;

  /** Runs a callback once, at the next full second; adding it again before that changes nothing. */
  add(callback: () => void): void {
    this.#callbacks.add(callback);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#run(), maxAgeMs - (performance.now() % maxAgeMs)).unref();
  }

  #run(): void {
    this.#timer = undefined;
    const callbacks = [...this.#callbacks];
    this.#callbacks.clear();
    for (const callback of callbacks) callback();
  }
}

/**
 * Progress of a request without live readers. Only the latest of each output is retained and written every second, or
 * before other writes of that output. While a reader follows, all progress is written at once, except the last, which
 * goes with the output.
 */
export class UnreadProgress {
  readonly #write: (write: ProgressWrite) => void;
  /** Latest progress by output. */
  readonly #latest = new Map<number, ProgressWrite>();
  #followedUntilMs = -Infinity;
  readonly #timer: FlushTimer;
  readonly #flush = (): void => this.flushAll();

  constructor(write: (write: ProgressWrite) => void, timer: FlushTimer) {
    this.#write = write;
    this.#timer = timer;
  }

  /** Treats the request as followed for the next `forMs`. */
  follow(forMs: number): void {
    this.#followedUntilMs = Math.max(this.#followedUntilMs, performance.now() + forMs);
    if (forMs > 0) this.flushAll();
  }

  add(write: ProgressWrite): void {
    const nowMs = performance.now();
    const { isOfText = false, progress } = write;
    const isFollowed = nowMs < this.#followedUntilMs && progress.done !== progress.total;
    // Progress of a text waits with its text in the write queue.
    if (isFollowed || isOfText) return this.#write(write);
    this.#latest.set(progress.index, write);
    this.#timer.add(this.#flush);
  }

  /** Discards progress that the next write contains. */
  drop(index: number): void {
    this.#latest.delete(index);
  }

  flushOutput(index: number): void {
    const write = this.#latest.get(index);
    if (write === undefined) return;
    this.#latest.delete(index);
    this.#write(write);
  }

  flushAll(): void {
    for (const index of this.#latest.keys()) this.flushOutput(index);
  }
}
