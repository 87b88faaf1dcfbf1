import type { TensorValue } from './tensor-values.ts';

const callsOfWindow = 256;

/**
 * Memory for one tensor that has another size in each call: a new array each time piles up until somebody collects it. What many
 * calls did not need is given back.
 */
export class GrowingArray<Numbers extends TensorValue['data']> {
  readonly #create: (size: number) => Numbers;
  #data: Numbers;
  #view: Numbers | undefined;
  #calls = 0;
  #most = 0;

  constructor(create: (size: number) => Numbers) {
    this.#create = create;
    this.#data = create(0);
  }

  get size(): number {
    return this.#data.length;
  }

  /** The same view as before while nothing has changed. */
  of(length: number): Numbers {
    this.#most = Math.max(this.#most, length);
    this.#calls = (this.#calls + 1) % callsOfWindow;
    const isTooLarge = this.#calls === 0 && 4 * this.#most < this.#data.length;
    if (this.#data.length < length || isTooLarge) this.#data = this.#create(Math.ceil(this.#most * 1.5));
    if (this.#calls === 0) this.#most = 0;
    if (this.#view?.buffer !== this.#data.buffer || this.#view.length !== length)
      this.#view = this.#data.subarray(0, length) as Numbers;
    return this.#view;
  }
}
