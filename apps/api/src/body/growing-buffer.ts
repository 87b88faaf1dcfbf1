const firstBytes = 65_536;
/** Growth factor of the buffer: copies little, and slow connections hold a small buffer. */
const growth = 8;

/** Collects chunks in one buffer: joining a list of chunks at the end would take twice the memory. */
export class GrowingBuffer {
  readonly #maxBytes: number;
  #buffer: Buffer;
  length = 0;

  /** @param maxBytes maximum total of appended bytes. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(firstBytes, maxBytes));
  }

  append(chunk: Uint8Array): void {
    const length = this.length + chunk.byteLength;
    if (length > this.#buffer.byteLength) {
      const larger = Buffer.allocUnsafeSlow(
        Math.min(this.#maxBytes, Math.max(length, growth * this.#buffer.byteLength)),
      );
      this.#buffer.copy(larger, 0, 0, this.length);
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.length);
    this.length = length;
  }

  /** Returns the appended bytes without a copy. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.length);
  }
}
