import type { TensorValue } from './tensor-values.ts';

const callsOfWindow = 256;

/**
 * Reusable memory for a tensor whose size changes between calls: new arrays would pile up until garbage collection.
 * Shrinks if many calls did not need the space.
 */
export class GrowingArray<Numbers extends TensorValue['data']> {
  readonly #create: (size: number) => Numbers;
  #data: Numbers;
  #view: Numbers | undefined;
  #calls = 0;
  #max = 0;

  constructor(create: (size: number) => Numbers) {
    this.#create = create;
    this.#data = create(0);
  }

  get size(): number {
    return this.#data.length;
  }

  /** Returns the array with this length, as the same view while nothing changes. */
  of(length: number): Numbers {
    this.#max = Math.max(this.#max, length);
    this.#calls = (this.#calls + 1) % callsOfWindow;
    const isTooLarge = this.#calls === 0 && 4 * this.#max < this.#data.length;
    if (this.#data.length < length || isTooLarge) this.#data = this.#create(Math.ceil(this.#max * 1.5));
    if (this.#calls === 0) this.#max = 0;
    if (this.#view?.buffer !== this.#data.buffer || this.#view.length !== length)
      this.#view = this.#data.subarray(0, length) as Numbers;
    return this.#view;
  }
}
