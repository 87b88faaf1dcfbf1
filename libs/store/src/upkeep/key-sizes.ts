import type { StoreConnection } from '../connection/store-connection.ts';

/** What keys of one kind take in Redis. */
export interface KeySize {
  keys: number;
  /** Estimated from some of them. */
  bytes: number;
}

/** Sizes are asked of so many keys of a kind; a scan comes in no order, so the first are as good as any. */
const sampleSize = 20;

/** Counts keys by kind as they are scanned past. */
export class KeySizes {
  readonly #counts = new Map<string, number>();
  readonly #samples = new Map<string, string[]>();

  note(kind: string, key: string): void {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const samples = this.#samples.get(kind) ?? [];
    if (samples.length < sampleSize) this.#samples.set(kind, [...samples, key]);
  }

  /** Asks for the sizes of the samples, all together. */
  async measure({ redis }: StoreConnection): Promise<Map<string, KeySize>> {
    const entries = [...this.#samples].map(async ([kind, keys]): Promise<[string, KeySize]> => {
      const replies = await Promise.all(keys.map((key) => redis.memory('USAGE', key)));
      // One that has gone since is no sample.
      const sizes = replies.filter((bytes) => bytes !== null);
      const mean = sizes.reduce((sum, bytes) => sum + bytes, 0) / Math.max(1, sizes.length);
      const count = this.#counts.get(kind) ?? 0;
      return [kind, { keys: count, bytes: Math.round(mean * count) }];
    });
    return new Map(await Promise.all(entries));
  }
}
