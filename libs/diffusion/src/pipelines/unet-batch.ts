import type { FloatTensor, TensorValue } from '@darkroom/runtime';
import type { LoadedGraph } from '../load-graph.ts';
import { modelFileError } from '../model-file.ts';

/** What a row gives the UNet besides latents and timestep, by the names of its inputs; such as the prompt's embedding. */
export type Conditioning = Readonly<Record<string, Float32Array>>;
/** The dimensions of one row of each. */
export type ConditioningShapes = Readonly<Record<string, readonly number[]>>;

/** One row of the UNet's batch writes itself through this. */
export interface UnetBatchRow {
  /** The latents, scaled for the model. */
  writeSample(target: Float32Array, offset: number): void;
  readonly timestep: number;
  readonly conditioning: Conditioning;
}

/** Calls the UNet with as many rows as there are, on arrays that are kept from call to call. */
export interface UnetBatch {
  /** Whether each row may have a timestep of its own. Some exports take one for the whole batch. */
  readonly hasTimestepPerRow: boolean;
  readonly conditioningShapes: ConditioningShapes;
  /**
   * @param rows with latents of one shape; of one timestep unless `hasTimestepPerRow`.
   * @param latentDims channels, height and width of one row.
   * @returns one output after the other, each as long as a row's latents.
   * @throws DarkroomError if the graph fails.
   */
  run(rows: readonly UnetBatchRow[], latentDims: readonly [number, number, number]): Promise<FloatTensor>;
}

/**
 * Makes the batch of a loaded UNet.
 *
 * @throws DarkroomError `model_unsupported` if the graph wants an input that there is nothing for, or has none for what
 * there is.
 */
export function createUnetBatch({ file, session }: LoadedGraph, conditioningShapes: ConditioningShapes): UnetBatch {
  const known = ['sample', 'timestep', ...Object.keys(conditioningShapes)];
  const unknown = session.inputs.find(({ name }) => !known.includes(name));
  const missing = known.find((input) => session.inputs.every(({ name }) => name !== input));
  if (unknown !== undefined || missing !== undefined) {
    const problem = unknown === undefined ? `has no input ${missing}` : `has an input ${unknown.name}`;
    throw modelFileError(file, `${problem}; supported are exactly ${known.join(', ')}`);
  }
  const timestepSpec = session.inputs.find(({ name }) => name === 'timestep')!;
  const hasTimestepPerRow = typeof timestepSpec.shape[0] === 'string';
  const isScalar = timestepSpec.shape.length === 0;
  const output = session.outputs[0]!.name;
  const buffers = new Map<string, Float32Array<ArrayBuffer>>();

  function bufferOf(name: string, length: number): Float32Array<ArrayBuffer> {
    let buffer = buffers.get(name);
    if (buffer === undefined || buffer.length < length) {
      buffer = new Float32Array(length);
      buffers.set(name, buffer);
    }
    return buffer.subarray(0, length);
  }

  function timestepsOf(rows: readonly UnetBatchRow[]): TensorValue {
    const values = (hasTimestepPerRow ? rows : rows.slice(0, 1)).map(({ timestep }) => timestep);
    const dims = isScalar ? [] : [values.length];
    // diffusers' ONNX pipeline casts to the input's type, which cuts fractions off.
    if (timestepSpec.type === 'int64') return { data: BigInt64Array.from(values, (t) => BigInt(Math.trunc(t))), dims };
    if (timestepSpec.type === 'int32') return { data: Int32Array.from(values), dims };
    return { data: Float32Array.from(values), dims };
  }

  return {
    hasTimestepPerRow,
    conditioningShapes,
    async run(rows, latentDims) {
      const latentLength = latentDims[0] * latentDims[1] * latentDims[2];
      const sample = bufferOf('sample', rows.length * latentLength);
      for (const [position, row] of rows.entries()) row.writeSample(sample, position * latentLength);
      const feeds: Record<string, TensorValue> = {
        sample: { data: sample, dims: [rows.length, ...latentDims] },
        timestep: timestepsOf(rows),
      };
      for (const [name, shape] of Object.entries(conditioningShapes)) {
        const length = shape.reduce((product, side) => product * side, 1);
        const data = bufferOf(name, rows.length * length);
        for (const [position, row] of rows.entries()) data.set(row.conditioning[name]!, position * length);
        feeds[name] = { data, dims: [rows.length, ...shape] };
      }
      return session.run(feeds, output);
    },
  };
}
