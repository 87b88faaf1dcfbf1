import { groupBy } from '@darkroom/core';
import type { FloatTensor, OnnxSession, TensorSpec, TensorValue } from '@darkroom/runtime';
import type { LoadedGraph } from './load-graph.ts';
import { LoraFeeds } from '../loras/lora-feeds.ts';
import { loraInputsOf, type LoraLayer, loraRowsInput } from '../loras/lora-layers.ts';
import type { LoraSet } from '../loras/lora-set.ts';
import { modelFileError } from '../model/model-file.ts';
import { lengthOf } from '../vae/plane.ts';

/** What a row gives the denoiser besides latents and timestep, by the names of its inputs; such as the prompt's embedding. */
export type Conditioning = Readonly<Record<string, Float32Array>>;
/**
 * The dimensions of one row of each. One side at most may be `open`: it is as long as a row's values make it, and rows
 * where it differs do not share a call.
 */
export type ConditioningShapes = Readonly<Record<string, readonly (number | 'open')[]>>;

export interface DenoiserInputs {
  /** The name of that for the latents; exports of transformers say `hidden_states`. */
  readonly sample?: string;
  /** Channels that each row writes after those of the latents; 0 if absent. */
  readonly extraChannels?: number;
  readonly conditioning: ConditioningShapes;
}

/** One row of the denoiser's batch writes itself through this. */
export interface DenoiserRow {
  /** The latents, scaled for the model, and the extra channels. */
  writeSample(target: Float32Array, offset: number): void;
  readonly timestep: number;
  readonly conditioning: Conditioning;
  /** Adapters; absent without. */
  readonly loras?: LoraSet | undefined;
}

/** channels, height, width */
type LatentDims = readonly [number, number, number];

/** Calls the denoiser with many rows at once, on arrays that are kept from call to call. */
export class DenoiserBatch {
  /** Whether each row may have a timestep of its own. Some exports take one for the whole batch. */
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
   * @throws DarkroomError `model_unsupported` if the graph wants an input that there is nothing for, or has none for what
   * there is.
   */
  constructor(graph: LoadedGraph, { sample = 'sample', extraChannels = 0, conditioning }: DenoiserInputs) {
    checkInputs(graph, [sample, 'timestep', ...Object.keys(conditioning)]);
    this.#session = graph.session;
    this.#sample = sample;
    this.#extraChannels = extraChannels;
    this.#conditioning = conditioning;
    this.#timestep = graph.session.inputs.find(({ name }) => name === 'timestep')!;
    this.hasTimestepPerRow = typeof this.#timestep.shape[0] === 'string';
  }

  /**
   * Has rows with adapters run in a graph of the same inputs and those of adapters. All others run in the one without: to the byte
   * as if there were none.
   *
   * @throws DarkroomError `model_unsupported` if it has other inputs.
   */
  addLoras(graph: LoadedGraph, layers: readonly LoraLayer[]): void {
    const ofLoras = layers.flatMap((layer) => Object.values(loraInputsOf(layer)));
    checkInputs(graph, [this.#sample, 'timestep', ...Object.keys(this.#conditioning), loraRowsInput, ...ofLoras]);
    this.#loras = { session: graph.session, feeds: new LoraFeeds(layers) };
  }

  /**
   * Gives each row's output, with as few calls of the graph as its inputs allow: rows share one unless it takes a single
   * timestep and theirs differ, or their open dimensions do, or some have adapters, whichever, and others none.
   *
   * @param rows with latents of one shape.
   * @param latentDims of one row.
   * @returns for each row as many values as its latents have; views into memory that is the caller's.
   * @throws DarkroomError if a call fails.
   */
  async run(rows: readonly DenoiserRow[], latentDims: LatentDims): Promise<Float32Array[]> {
    const length = lengthOf(latentDims);
    const outputs = new Map<DenoiserRow, Float32Array>();
    for (const group of groupBy(rows, (row) => this.#keyOf(row))) {
      const { data } = await this.runTogether(group, latentDims);
      for (const [position, row] of group.entries()) {
        outputs.set(row, data.subarray(position * length, (position + 1) * length));
      }
    }
    return rows.map((row) => outputs.get(row)!);
  }

  /** One call of the graph, with rows that can share it. */
  runTogether(rows: readonly DenoiserRow[], latentDims: LatentDims): Promise<FloatTensor> {
    const sampleDims = this.#sampleDimsOf(latentDims);
    const length = lengthOf(sampleDims);
    const samples = this.#bufferOf(this.#sample, rows.length * length);
    for (const [position, row] of rows.entries()) row.writeSample(samples, position * length);
    const feeds: Record<string, TensorValue> = {
      [this.#sample]: { data: samples, dims: [rows.length, ...sampleDims] },
      timestep: this.#timestepsOf(rows),
    };
    for (const [name, shape] of Object.entries(this.#conditioning)) {
      const { length } = rows[0]!.conditioning[name]!;
      const data = this.#bufferOf(name, rows.length * length);
      for (const [position, row] of rows.entries()) data.set(row.conditioning[name]!, position * length);
      feeds[name] = { data, dims: [rows.length, ...closed(shape, length)] };
    }
    const session = rows[0]!.loras === undefined ? this.#session : this.#addLoraFeeds(feeds, rows);
    return session.run(feeds, session.outputs[0]!.name);
  }

  /** For messages: what such a call is given. */
  describeInputs(rows: readonly DenoiserRow[], latentDims: LatentDims): string {
    const dimsOf = { [this.#sample]: this.#sampleDimsOf(latentDims) } as Record<string, readonly number[]>;
    for (const [name, shape] of Object.entries(this.#conditioning)) {
      dimsOf[name] = closed(shape, rows[0]!.conditioning[name]!.length);
    }
    const described = Object.entries(dimsOf).map(([name, dims]) => `${name} [${[rows.length, ...dims].join(', ')}]`);
    return described.join(' and ');
  }

  #sampleDimsOf([channels, height, width]: LatentDims): LatentDims {
    return [channels + this.#extraChannels, height, width];
  }

  /** Rows with the same key can share a call. */
  #keyOf({ timestep, conditioning, loras }: DenoiserRow): string {
    const lengths = Object.keys(this.#conditioning).map((name) => conditioning[name]!.length);
    return [this.hasTimestepPerRow ? '' : timestep, ...lengths, loras === undefined ? '' : 'loras'].join(' ');
  }

  #addLoraFeeds(feeds: Record<string, TensorValue>, rows: readonly DenoiserRow[]): OnnxSession {
    const { session, feeds: loras } = this.#loras!;
    Object.assign(feeds, loras.feedsOf(rows.map((row) => row.loras!)));
    return session;
  }

  #timestepsOf(rows: readonly DenoiserRow[]): TensorValue {
    const values = (this.hasTimestepPerRow ? rows : rows.slice(0, 1)).map(({ timestep }) => timestep);
    const { type, shape } = this.#timestep;
    const dims = shape.length === 0 ? [] : [values.length];
    // diffusers' ONNX pipeline casts to the input's type, which cuts fractions off.
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

/** The shape of a row that has so many values. */
function closed(shape: readonly (number | 'open')[], length: number): number[] {
  const others = shape.reduce<number>((product, side) => product * (side === 'open' ? 1 : side), 1);
  return shape.map((side) => (side === 'open' ? length / others : side));
}
