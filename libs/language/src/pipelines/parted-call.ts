import type { Decoder, DecoderRead } from '../decoder/decoder.ts';

/** A call of the model for some rows, that may be spread over steps: between its parts others write. */
export class PartedCall<Row> {
  readonly rows: readonly Row[];
  /** Tokens, where each row is as wide as the widest. */
  readonly tokens: number;
  readonly #parts: ReturnType<Decoder['runByParts']>;
  #count = 0;
  #takenMs = 0;

  /** @param reads one of each row. */
  constructor(decoder: Decoder, rows: readonly Row[], reads: readonly DecoderRead[]) {
    this.rows = rows;
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

  /**
   * Goes on by one part at least, and by others if they seem to take no longer than this, all together.
   *
   * @returns the rows' logits if it has come to its end.
   */
  async goOn(limitMs: number): Promise<readonly Float32Array[] | undefined> {
    for (let leftMs = limitMs; ;) {
      const startedAtMs = performance.now();
      const part = await this.#parts.next();
      const partMs = performance.now() - startedAtMs;
      this.#count += 1;
      this.#takenMs += partMs;
      if (part.done === true) return part.value;
      leftMs -= partMs;
      if (leftMs < partMs) return undefined;
    }
  }
}
