import type { TensorValue } from '@darkroom/runtime';

/** A matrix of int64 that begins with zeros. Numbers are written as their halves: a BigInt each takes ten times as long. */
export class WholeNumbers {
  readonly tensor: TensorValue;
  readonly #halves: Int32Array;
  readonly #columns: number;

  constructor(rows: number, columns: number) {
    const data = new BigInt64Array(rows * columns);
    this.tensor = { data, dims: [rows, columns] };
    this.#halves = new Int32Array(data.buffer);
    this.#columns = columns;
  }

  set(row: number, column: number, value: number): void {
    this.#halves[2 * (row * this.#columns + column)] = value;
  }

  /** Ones. */
  fill(row: number, from: number, count: number): void {
    for (let column = from; column < from + count; column++) this.set(row, column, 1);
  }
}
