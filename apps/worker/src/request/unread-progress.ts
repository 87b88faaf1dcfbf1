import type { RequestWrite } from '@darkroom/store';

type ProgressWrite = Omit<Extract<RequestWrite, { type: 'progress' }>, 'delivery' | 'type'>;

/** How old what a later reader finds may be, ms. */
const oldestMs = 1000;

/**
 * How far the outputs of a request are that nobody reads as it comes. Only the newest is kept, and said a second later, or before
 * what else is written of that output. While somebody follows, each is said at once, but for the last: it goes with the output.
 */
export class UnreadProgress {
  readonly #write: (write: ProgressWrite) => void;
  /** By output. */
  readonly #newest = new Map<number, ProgressWrite>();
  #followedUntilMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(write: (write: ProgressWrite) => void) {
    this.#write = write;
  }

  /** Somebody does for so long from now, ms. */
  follow(forMs: number): void {
    this.#followedUntilMs = Math.max(this.#followedUntilMs, performance.now() + forMs);
    if (forMs > 0) this.sayAll();
  }

  add(write: ProgressWrite): void {
    const nowMs = performance.now();
    const { isOfText = false, progress } = write;
    const isFollowed = nowMs < this.#followedUntilMs && progress.done !== progress.total;
    // That of a text waits for its text.
    if (isFollowed || isOfText) return this.#write(write);
    this.#newest.set(progress.index, write);
    // All requests of a worker together: at the full second.
    this.#timer ??= setTimeout(() => this.sayAll(), oldestMs - (nowMs % oldestMs)).unref();
  }

  /** What comes next says it, too. */
  drop(index: number): void {
    this.#newest.delete(index);
  }

  sayOf(index: number): void {
    const write = this.#newest.get(index);
    if (write === undefined) return;
    this.#newest.delete(index);
    this.#write(write);
  }

  sayAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const index of this.#newest.keys()) this.sayOf(index);
  }
}
