export interface OwnerTurnsOptions {
  /** Turns held at the same time, by all owners together. Default: no limit. */
  concurrency?: number;
  /** Returns how many turns one owner may hold. Default: no limit. */
  maxHeldBy?: (owner: string) => number;
  /** Requests for a turn that one owner may have waiting. Default: no limit. */
  maxWaitingPerOwner?: number;
}

interface Waiter {
  grant(): void;
}

/**
 * Limits work for clients: a fixed number of turns at a time, round-robin over the owners with waiting work, so that
 * one owner's backlog delays another owner by at most one turn. Each owner's work starts in its order.
 *
 * @example
 * const turns = new OwnerTurns({ concurrency: 2, maxWaitingPerOwner: 64 });
 * const release = await turns.acquire(owner, signal);
 * if (release === undefined) throw tooManyRequests();
 * try { await decode(bytes); } finally { release(); }
 */
export class OwnerTurns {
  readonly #options: Required<OwnerTurnsOptions>;
  /** In the order of their next turn: an owner that got one goes to the end. */
  readonly #waiting = new Map<string, Waiter[]>();
  readonly #held = new Map<string, number>();
  #running = 0;

  constructor({
    concurrency = Infinity,
    maxHeldBy = () => Infinity,
    maxWaitingPerOwner = Infinity,
  }: OwnerTurnsOptions) {
    this.#options = { concurrency, maxHeldBy, maxWaitingPerOwner };
  }

  /** Starts a turn at once. Returns the function that ends it; undefined if the owner would have to wait. */
  take(owner: string): (() => void) | undefined {
    return this.#canStart(owner) ? this.#start(owner) : undefined;
  }

  /**
   * Resolves with the function that ends the turn (calling it again does nothing), or with undefined if the owner has
   * too much waiting. Rejects with the signal's reason if it aborts while the owner waits.
   */
  async acquire(owner: string, signal?: AbortSignal): Promise<(() => void) | undefined> {
    signal?.throwIfAborted();
    if (this.#canStart(owner)) return this.#start(owner);
    const waiters = this.#waiting.get(owner) ?? [];
    if (waiters.length >= this.#options.maxWaitingPerOwner) return undefined;
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        grant: () => {
          signal?.removeEventListener('abort', leave);
          resolve(this.#start(owner));
        },
      };
      const leave = (): void => {
        this.#remove(owner, waiter);
        reject(signal!.reason as Error);
      };
      waiters.push(waiter);
      this.#waiting.set(owner, waiters);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  #canStart(owner: string): boolean {
    const { concurrency, maxHeldBy } = this.#options;
    return this.#running < concurrency && (this.#held.get(owner) ?? 0) < maxHeldBy(owner);
  }

  #start(owner: string): () => void {
    this.#hold(owner, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#hold(owner, -1);
      this.#grantNext();
    };
  }

  #hold(owner: string, change: number): void {
    this.#running += change;
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }

  #grantNext(): void {
    for (const [owner, waiters] of this.#waiting) {
      if (!this.#canStart(owner)) continue;
      const [waiter] = waiters as [Waiter];
      this.#remove(owner, waiter);
      if (waiters.length > 0) {
        this.#waiting.delete(owner);
        this.#waiting.set(owner, waiters);
      }
      return waiter.grant();
    }
  }

  #remove(owner: string, waiter: Waiter): void {
    const waiters = this.#waiting.get(owner)!;
    waiters.splice(waiters.indexOf(waiter), 1);
    if (waiters.length === 0) this.#waiting.delete(owner);
  }
}
