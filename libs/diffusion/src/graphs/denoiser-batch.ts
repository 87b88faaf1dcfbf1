import { groupBy, type NonEmpty, valueOfKey } from '@darkroom/core';
import { type FloatTensor, lengthOf, type OnnxSession, type TensorSpec, type TensorValue } from '@darkroom/runtime';
import type { LoadedGraph } from '../onnx/load-graph.ts';
import { LoraFeeds } from '../loras/lora-feeds.ts';
import { loraInputsOf, type LoraLayer, loraRowsInput } from '../loras/lora-layers.ts';
import type { LoraSet } from '../loras/lora-set.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import type { LatentDims } from '../vae/plane.ts';

/** A row's inputs besides latents and timestep, such as the prompt's embedding, by the name of the graph's input. */
export type Conditioning = Readonly<Record<string, Float32Array>>;
/**
 * The dimensions of each conditioning input for one row. At most one side may be `open`: its length follows from the
 * row's values, and rows in which it differs do not share a call.
 */
export type ConditioningShapes = Readonly<Record<string, readonly (number | 'open')[]>>;

export interface DenoiserInputs {
  /** Name of the latents' input; `hidden_states` in exports of transformers. */
  readonly sample?: string;
  /** Channels that each row writes after the latents' own; 0 if absent. */
  readonly extraChannels?: number;
  readonly conditioning: ConditioningShapes;
}

/** One row of the denoiser's batch. */
export interface DenoiserRow {
  /** Writes the latents, scaled for the model, and the extra channels. */
  writeSample(target: Float32Array, offset: number): void;
  readonly timestep: number;
  readonly conditioning: Conditioning;
  /** Adapters; absent if the row has none. */
  readonly loras?: LoraSet;
}

/** Calls the denoiser with many rows at once. Reuses its input arrays from call to call. */
export class DenoiserBatch {
  /** True if each row may have its own timestep. Some exports take one timestep for the whole batch. */
  readonly hasTimestepPerRow: boolean;
  readonly #session: OnnxSession;
  readonly #sample: string;
  readonly #extraChannels: number;
  readonly #conditioning: ConditioningShapes;
  readonly #timestep: TensorSpec;
  #loras: { readonly session: OnnxSession; readonly feeds: LoraFeeds } | undefined;
  readonly #buffers = new Map<string, Float32Array<ArrayBuffer>>();

  /**
   * @param graph a loaded UNet or transformer.
   * @throws DarkroomError `model_unsupported` if the graph has an input that is not listed here, or lacks one that is.
   */
  constructor(graph: LoadedGraph, { sample = 'sample', extraChannels = 0, conditioning }: DenoiserInputs) {
    checkInputs(graph, [sample, 'timestep', ...Object.keys(conditioning)]);
    this.#session = graph.session;
    this.#sample = sample;
    this.#extraChannels = extraChannels;
    this.#conditioning = conditioning;
    this.#timestep = valueOfKey(new Map(graph.session.inputs.map((input) => [input.name, input])), 'timestep');
    this.hasTimestepPerRow = typeof this.#timestep.shape[0] === 'string';
  }

  /** True if the graph takes prompts of any length. Some exports fix the length to that of one chunk. */
  get takesAnyLength(): boolean {
    const prompt = this.#session.inputs.find(({ name }) => name === 'encoder_hidden_states');
    return typeof prompt?.shape[1] === 'string';
  }

  /** True if rows may have adapters. */
  get hasLoras(): boolean {
    return this.#loras !== undefined;
  }

  /**
   * Adds a graph for rows with adapters: the same inputs plus those of the adapters. Rows without adapters still run in
   * the graph without them, so their bytes do not change.
   *
   * @throws DarkroomError `model_unsupported` if the graph has other inputs.
   */
  addLoras(graph: LoadedGraph, layers: readonly LoraLayer[]): void {
    const loraInputs = layers.flatMap((layer) => Object.values(loraInputsOf(layer)));
    checkInputs(graph, [this.#sample, 'timestep', ...Object.keys(this.#conditioning), loraRowsInput, ...loraInputs]);
    this.#loras = { session: graph.session, feeds: new LoraFeeds(layers) };
  }

  /**
   * Returns each row's output with as few calls of the graph as possible. Rows share a call unless they differ in an
   * open dimension, in having adapters at all, or in the timestep where the graph takes only one.
   *
   * @param rows with latents of one shape.
   * @param latentDims of one row.
   * @returns an array for each row, as long as its latents. The arrays are views into memory that the caller owns.
   * @throws DarkroomError if a call fails.
   */
  async run(rows: readonly DenoiserRow[], latentDims: LatentDims): Promise<ReadonlyMap<DenoiserRow, Float32Array>> {
    const length = lengthOf(latentDims);
    const outputs = new Map<DenoiserRow, Float32Array>();
    for (const group of groupBy(rows, (row) => this.#keyOf(row))) {
      const { data } = await this.runTogether(group, latentDims);
      for (const [position, row] of group.entries()) {
        outputs.set(row, data.subarray(position * length, (position + 1) * length));
      }
    }
    return outputs;
  }

  /** Calls the graph once with rows that can share the call. */
  runTogether(rows: NonEmpty<DenoiserRow>, latentDims: LatentDims): Promise<FloatTensor> {
    const sampleDims = this.#sampleDimsOf(latentDims);
    const length = lengthOf(sampleDims);
    const samples = this.#bufferOf(this.#sample, rows.length * length);
    for (const [position, row] of rows.entries()) row.writeSample(samples, position * length);
    const feeds: Record<string, TensorValue> = {
      [this.#sample]: { data: samples, dims: [rows.length, ...sampleDims] },
      timestep: this.#timestepsOf(rows),
    };
    for (const [name, shape] of Object.entries(this.#conditioning)) {
      const { length } = conditioningOf(rows[0], name);
      const data = this.#bufferOf(name, rows.length * length);
      for (const [position, row] of rows.entries()) data.set(conditioningOf(row, name), position * length);
      feeds[name] = { data, dims: [rows.length, ...resolveShape(shape, length)] };
    }
    const sets = rows.flatMap(({ loras }) => loras ?? []);
    if (sets.length === 0) return this.#session.run(feeds);
    if (this.#loras === undefined) throw new Error('a row has adapters, and no graph takes them');
    return this.#loras.session.run({ ...feeds, ...this.#loras.feeds.feedsOf(sets) });
  }

  /** Returns the names and dimensions of a call's inputs, for error messages. */
  describeInputs(rows: NonEmpty<DenoiserRow>, latentDims: LatentDims): string {
    const dimsOf = { [this.#sample]: this.#sampleDimsOf(latentDims) } as Record<string, readonly number[]>;
    for (const [name, shape] of Object.entries(this.#conditioning)) {
      dimsOf[name] = resolveShape(shape, conditioningOf(rows[0], name).length);
    }
    const described = Object.entries(dimsOf).map(([name, dims]) => `${name} [${[rows.length, ...dims].join(', ')}]`);
    return described.join(' and ');
  }

  #sampleDimsOf([channels, height, width]: LatentDims): LatentDims {
    return [channels + this.#extraChannels, height, width];
  }

  /** Returns the grouping key: rows with the same key can share a call. */
  #keyOf(row: DenoiserRow): string {
    const lengths = Object.keys(this.#conditioning).map((name) => conditioningOf(row, name).length);
    return [this.hasTimestepPerRow ? '' : row.timestep, ...lengths, row.loras === undefined ? '' : 'loras'].join(' ');
  }

  #timestepsOf(rows: NonEmpty<DenoiserRow>): TensorValue {
    const values = (this.hasTimestepPerRow ? rows : rows.slice(0, 1)).map(({ timestep }) => timestep);
    const { type, shape } = this.#timestep;
    const dims = shape.length === 0 ? [] : [values.length];
    // diffusers' ONNX pipeline casts timesteps to the input's type, which truncates fractions.
    if (type === 'int64') return { data: BigInt64Array.from(values, (t) => BigInt(Math.trunc(t))), dims };
    if (type === 'int32') return { data: Int32Array.from(values), dims };
    return { data: Float32Array.from(values), dims };
  }

  #bufferOf(name: string, length: number): Float32Array<ArrayBuffer> {
    let buffer = this.#buffers.get(name);
    if (buffer === undefined || buffer.length < length) {
      buffer = new Float32Array(length);
      this.#buffers.set(name, buffer);
    }
    return buffer.subarray(0, length);
  }
}

function checkInputs({ file, session }: LoadedGraph, known: readonly string[]): void {
  const unknown = session.inputs.find(({ name }) => !known.includes(name));
  const missing = known.find((input) => session.inputs.every(({ name }) => name !== input));
  if (unknown === undefined && missing === undefined) return;
  const problem = unknown === undefined ? `has no input ${missing}` : `has an input ${unknown.name}`;
  throw modelFileError(file, `${problem}; supported are exactly ${known.join(', ')}`);
}

/** Returns a row's shape with its open side computed from the number of values. */
function resolveShape(shape: readonly (number | 'open')[], length: number): number[] {
  const others = shape.reduce<number>((product, side) => product * (side === 'open' ? 1 : side), 1);
  return shape.map((side) => (side === 'open' ? length / others : side));
}

function conditioningOf({ conditioning }: DenoiserRow, name: string): Float32Array {
  const values = conditioning[name];
  if (values === undefined) throw new Error(`a row lacks the denoiser's input ${name}`);
  return values;
}
