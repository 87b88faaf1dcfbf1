/** What somebody may want an engine to do once it has nothing else to do. */
export type Wish = 'sleep' | 'reload';

/** Those who wait until it is done. */
export class Wishes {
  #waiters: { wish: Wish; resolve: (isDone: boolean) => void }[] = [];

  /** @returns whether it was done. */
  wait(wish: Wish): Promise<boolean> {
    return new Promise((resolve) => this.#waiters.push({ wish, resolve }));
  }

  /** Tells all who want one of these; of every wish, if none is named. */
  answer(isDone: boolean, wishes: readonly Wish[] = ['sleep', 'reload']): void {
    const told = this.#waiters.filter(({ wish }) => wishes.includes(wish));
    this.#waiters = this.#waiters.filter(({ wish }) => !wishes.includes(wish));
    for (const { resolve } of told) resolve(isDone);
  }
}
