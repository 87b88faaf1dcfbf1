import type { FloatTensor } from '@darkroom/runtime';
import type { LoadedGraph } from '../load-graph.ts';
import { modelFileError } from '../model-file.ts';

/** One row of the UNet's batch writes itself through this. */
export interface UnetBatchRow {
  /** The latents, scaled for the model. */
  writeSample(target: Float32Array, offset: number): void;
  readonly timestep: number;
  /** maxTokens × width. */
  readonly embedding: Float32Array;
}

/** Calls the UNet with as many rows as there are, on arrays that are kept from call to call. */
export interface UnetBatch {
  /** Whether each row may have a timestep of its own. Some exports take one for the whole batch. */
  readonly hasTimestepPerRow: boolean;
  /**
   * @param rows with latents of one shape; of one timestep unless `hasTimestepPerRow`.
   * @param latentDims channels, height and width of one row.
   * @returns one output after the other, each as long as a row's latents.
   * @throws DarkroomError if the graph fails.
   */
  run(rows: readonly UnetBatchRow[], latentDims: readonly [number, number, number]): Promise<FloatTensor>;
}

const knownInputs = ['sample', 'timestep', 'encoder_hidden_states'];

/**
 * Makes the batch of a loaded UNet.
 *
 * @throws DarkroomError `model_unsupported` if the graph wants an input that there is nothing for.
 */
export function createUnetBatch({ file, session }: LoadedGraph, maxTokens: number): UnetBatch {
  const unknown = session.inputs.find(({ name }) => !knownInputs.includes(name));
  const timestepSpec = session.inputs.find(({ name }) => name === 'timestep');
  if (unknown !== undefined || timestepSpec === undefined) {
    const problem = unknown === undefined ? 'has no input timestep' : `has an input ${unknown.name}`;
    throw modelFileError(file, `${problem}; supported are exactly ${knownInputs.join(', ')}`);
  }
  const hasTimestepPerRow = typeof timestepSpec.shape[0] === 'string';
  const isScalar = timestepSpec.shape.length === 0;
  const output = session.outputs[0]!.name;
  let samples = new Float32Array(0);
  let embeddings = new Float32Array(0);

  function timestepsOf(rows: readonly UnetBatchRow[]) {
    const values = (hasTimestepPerRow ? rows : rows.slice(0, 1)).map(({ timestep }) => timestep);
    const dims = isScalar ? [] : [values.length];
    // diffusers' ONNX pipeline casts to the input's type, which cuts fractions off.
    if (timestepSpec!.type === 'int64') return { data: BigInt64Array.from(values, (t) => BigInt(Math.trunc(t))), dims };
    if (timestepSpec!.type === 'int32') return { data: Int32Array.from(values), dims };
    return { data: Float32Array.from(values), dims };
  }

  return {
    hasTimestepPerRow,
    async run(rows, latentDims) {
      const latentLength = latentDims[0] * latentDims[1] * latentDims[2];
      const embeddingLength = rows[0]!.embedding.length;
      samples = grown(samples, rows.length * latentLength);
      embeddings = grown(embeddings, rows.length * embeddingLength);
      for (const [position, row] of rows.entries()) {
        row.writeSample(samples, position * latentLength);
        embeddings.set(row.embedding, position * embeddingLength);
      }
      const feeds = {
        sample: { data: samples.subarray(0, rows.length * latentLength), dims: [rows.length, ...latentDims] },
        timestep: timestepsOf(rows),
        encoder_hidden_states: {
          data: embeddings.subarray(0, rows.length * embeddingLength),
          dims: [rows.length, maxTokens, embeddingLength / maxTokens],
        },
      };
      return session.run(feeds, output);
    },
  };
}

function grown(array: Float32Array<ArrayBuffer>, length: number): Float32Array<ArrayBuffer> {
  return array.length >= length ? array : new Float32Array(length);
}
