/** Memory for one tensor that has another size in each call: a new array each time piles up until somebody collects it. */
export class GrowingArray {
  #data = new Float32Array(0);

  of(length: number): Float32Array {
    if (this.#data.length < length) this.#data = new Float32Array(Math.ceil(length * 1.5));
    return this.#data.subarray(0, length);
  }
}
