import type { Decoder, DecoderRead } from '../decoder/decoder.ts';

/**
 * The clock that tells how long a device works: a CPU's own time does not pass while others have it.
 *
 * @param device as a component names it.
 */
export function clockOf(device: string): () => number {
  if (device !== 'cpu') return () => performance.now();
  return () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
}

/** A call of the model for some rows, that may be spread over steps: between its parts others write. */
export class PartedCall<Row> {
  readonly rows: readonly Row[];
  /** Tokens, where each row is as wide as the widest. */
  readonly tokens: number;
  readonly #parts: ReturnType<Decoder['runByParts']>;
  #count = 0;
  #takenMs = 0;

  readonly #clock: () => number;

  /**
   * @param reads one of each row.
   * @param clock in milliseconds.
   */
  constructor(decoder: Decoder, rows: readonly Row[], reads: readonly DecoderRead[], clock: () => number) {
    this.rows = rows;
    this.#clock = clock;
    this.tokens = reads.length * reads.reduce((most, { ids }) => Math.max(most, ids.length), 0);
    this.#parts = decoder.runByParts(reads);
  }

  /** How long a part took on the average: the longest may have been held up by something else. */
  get partMs(): number {
    return this.#takenMs / this.#count;
  }

  /** How long all parts took so far. */
  get takenMs(): number {
    return this.#takenMs;
  }

  /** Gives up what is left of it: what it has begun is let go of. */
  async drop(): Promise<void> {
    await this.#parts.return([]);
  }

  /**
   * Goes on by one part at least, and by others if they seem to take no longer than this, all together.
   *
   * @returns the rows' logits if it has come to its end.
   */
  async goOn(limitMs: number): Promise<readonly Float32Array[] | undefined> {
    for (let leftMs = limitMs; ;) {
      const startedAtMs = this.#clock();
      const part = await this.#parts.next();
      const partMs = this.#clock() - startedAtMs;
      this.#count += 1;
      this.#takenMs += partMs;
      if (part.done === true) return part.value;
      leftMs -= partMs;
      if (leftMs < partMs) return undefined;
    }
  }
}
