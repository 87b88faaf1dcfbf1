/**
 * One ONNX graph, loaded. `run` blocks the event loop for as long as the graph takes (onnxruntime-node 1.30 calls it
 * synchronously from a setImmediate), so it belongs in a process that has nothing else to answer for.
 */
// First, because the import after it already reads what it sets.
// oxlint-disable-next-line import/no-unassigned-import
import './no-telemetry.ts';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { readHalves, writeHalves } from './half-precision.ts';
import { toRuntimeError } from './runtime-error.ts';

/** Where graphs run. `cuda` needs the CUDA build's libraries, which only the GPU image has. */
export const devices = ['cpu', 'cuda'] as const;
export type Device = (typeof devices)[number];

/** An input or output as the graph declares it. */
export interface TensorSpec {
  readonly name: string;
  /** ONNX's name of the element type, such as `float32`, `float16` or `int64`. */
  readonly type: string;
  /** Dimensions; a name stands for one that varies. */
  readonly shape: readonly (number | string)[];
}

/** Values as the graph's caller has them: float32 for any floating input, numbers for integer ones. */
export interface TensorValue {
  /** Row-major. Copied by ONNX Runtime before `run` resolves, so it may be used again for the next call. */
  readonly data: Float32Array | BigInt64Array | Int32Array;
  readonly dims: readonly number[];
}

export interface FloatTensor {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

export interface LoadOnnxSessionOptions {
  /** Path of the `.onnx` file; external data is found beside it. */
  file: string;
  device?: Device;
  /** CUDA's number of the device. */
  deviceId?: number;
  /** Threads of one graph run; ONNX Runtime's own choice (the number of cores) if absent. */
  threads?: number;
}

/** A loaded graph. */
export interface OnnxSession {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /**
   * Runs the graph and gives one of its outputs as float32.
   *
   * @throws DarkroomError `out_of_memory` or `engine_failed`.
   */
  run(feeds: Readonly<Record<string, TensorValue>>, output: string): Promise<FloatTensor>;
  /** The same with several of its outputs, in the order asked for. */
  runForAll(feeds: Readonly<Record<string, TensorValue>>, outputs: readonly string[]): Promise<FloatTensor[]>;
  /** Frees the graph. */
  dispose(): Promise<void>;
}

/**
 * Loads a graph.
 *
 * @throws DarkroomError `out_of_memory` or `engine_failed`; the cause has ONNX Runtime's own words.
 */
export async function loadOnnxSession(options: LoadOnnxSessionOptions): Promise<OnnxSession> {
  const { file, device = 'cpu', deviceId = 0, threads } = options;
  let session: InferenceSession;
  try {
    session = await InferenceSession.create(file, {
      // Without `cpu` in the list: ONNX Runtime adds it itself, but a CUDA that fails to start must not pass unseen.
      executionProviders: [device === 'cuda' ? { name: 'cuda', deviceId } : 'cpu'],
      ...(threads === undefined ? {} : { intraOpNumThreads: threads }),
      interOpNumThreads: 1,
      executionMode: 'sequential',
      // Threads that spin while they wait take the cores from Redis, the API and the worker beside them: with both cores of
      // a machine shared, a UNet call of 4 rows took 91 ms (median of 100) with spinning and 51 ms without.
      // Weights behind a DequantizeLinear become float when a graph is loaded for the CPU, not at each call: products and
      // convolutions of weights that change have other roundings for one row than for two. On CUDA they stay INT8.
      extra: { session: { intra_op: { allow_spinning: '0' }, ...(device === 'cpu' && { disable_quant_qdq: '1' }) } },
      logSeverityLevel: 3,
    });
  } catch (error) {
    throw toRuntimeError(error, 'runtime.load', `a model file could not be loaded on ${device}`);
  }
  const inputs = session.inputMetadata.map(toTensorSpec);
  const types = new Map(inputs.map(({ name, type }) => [name, type]));

  async function runForAll(feeds: Readonly<Record<string, TensorValue>>, outputs: readonly string[]) {
    const tensors: Record<string, Tensor> = {};
    for (const [name, value] of Object.entries(feeds)) tensors[name] = toTensor(types.get(name), value);
    try {
      const results = await session.run(tensors, outputs);
      return outputs.map((output) => toFloatTensor(results[output]!));
    } catch (error) {
      throw toRuntimeError(error, 'runtime.run', 'the model could not be run');
    }
  }

  return {
    inputs,
    outputs: session.outputMetadata.map(toTensorSpec),
    runForAll,
    async run(feeds, output) {
      const [result] = await runForAll(feeds, [output]);
      return result!;
    },
    async dispose() {
      await session.release();
    },
  };
}

function toTensorSpec(metadata: InferenceSession.ValueMetadata): TensorSpec {
  if (!metadata.isTensor) return { name: metadata.name, type: 'not a tensor', shape: [] };
  return { name: metadata.name, type: metadata.type, shape: metadata.shape };
}

function toTensor(type: string | undefined, { data, dims }: TensorValue): Tensor {
  if (type === 'float16' && data instanceof Float32Array) {
    const halves = new Uint16Array(data.length);
    writeHalves(data, halves);
    return new Tensor('float16', halves, dims);
  }
  return new Tensor(data, dims);
}

function toFloatTensor(tensor: Tensor): FloatTensor {
  const { data, dims } = tensor;
  if (data instanceof Float32Array) return { data, dims };
  if (tensor.type !== 'float16' || !ArrayBuffer.isView(data)) {
    throw new TypeError(`an output of type ${tensor.type} was asked for as float32`);
  }
  // A Uint16Array on Node 20, a Float16Array on Node 24: the same bytes.
  const halves = new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2);
  const floats = new Float32Array(halves.length);
  readHalves(halves, floats);
  return { data: floats, dims };
}
