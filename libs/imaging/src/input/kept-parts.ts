/** The retained parts of a file, moved to its beginning in place: a copy would double the memory. */
export class KeptParts {
  readonly #file: Buffer;
  #length = 0;

  constructor(file: Buffer) {
    this.#file = file;
  }

  /** Total length of the retained parts. */
  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return this.#file.subarray(0, this.#length);
  }

  /** Retains the bytes from `start` to `end`, which must follow all parts retained before. */
  retain(start: number, end: number): void {
    if (start !== this.#length) this.#file.copyWithin(this.#length, start, end);
    this.#length += end - start;
  }
}
