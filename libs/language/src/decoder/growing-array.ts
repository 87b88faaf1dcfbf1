const callsOfWindow = 256;

/**
 * Memory for one tensor that has another size in each call: a new array each time piles up until somebody collects it. What many
 * calls did not need is given back.
 */
export class GrowingArray {
  #data = new Float32Array(0);
  #calls = 0;
  #most = 0;

  get size(): number {
    return this.#data.length;
  }

  of(length: number): Float32Array {
    this.#most = Math.max(this.#most, length);
    this.#calls = (this.#calls + 1) % callsOfWindow;
    const isTooLarge = this.#calls === 0 && 4 * this.#most < this.#data.length;
    if (this.#data.length < length || isTooLarge) this.#data = new Float32Array(Math.ceil(this.#most * 1.5));
    if (this.#calls === 0) this.#most = 0;
    return this.#data.subarray(0, length);
  }
}
