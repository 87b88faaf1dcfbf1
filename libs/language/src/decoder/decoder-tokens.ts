/** The new tokens of a call, as the decoder's graph reads them: ids, or embeddings. */
import type { TensorValue } from '@darkroom/runtime';
import { Int64Matrix } from './int64-matrix.ts';

/** Ids from here up stand for images. Each image has its own id, so the prefix cache distinguishes images. */
export const firstImageId = 2 ** 32;

/** New tokens of one row. */
export interface DecoderRow {
  readonly ids: readonly number[];
  /** Embeddings of the ids from `firstImageId` up, in order: `[count, width]`. */
  readonly embeddings?: Float32Array | undefined;
}

/** Creates the input of a decoder's graph that has the new tokens. */
export interface DecoderTokens {
  readonly inputName: 'input_ids' | 'inputs_embeds';
  /** Returns an input of this size with arbitrary contents. */
  sampleOf(rows: number, columns: number): TensorValue;
  /** Returns the input `[rows, columns, …]`; shorter rows are padded. */
  tensorOf(rows: readonly DecoderRow[], columns: number): TensorValue | Promise<TensorValue>;
  dispose(): Promise<void>;
}

/** Tokens of graphs that read ids. */
export const tokenIds: DecoderTokens = {
  inputName: 'input_ids',
  sampleOf: (rows, columns) => new Int64Matrix(rows, columns).tensor,
  tensorOf: idTensor,
  dispose: () => Promise.resolve(),
};

/** Returns the ids of tokens as int64 `[rows, columns]`; 0 for padding and images. */
export function idTensor(rows: readonly DecoderRow[], columns: number): TensorValue {
  const matrix = new Int64Matrix(rows.length, columns);
  for (const [row, { ids }] of rows.entries())
    for (const [at, id] of ids.entries()) if (id < firstImageId) matrix.set(row, at, id);
  return matrix.tensor;
}
