/**
 * A loaded ONNX graph. `run` blocks the event loop for the duration of the call (onnxruntime-node 1.30 calls the graph
 * synchronously from a setImmediate), so use it in a process that serves nothing else.
 */
// Import first: the import of ONNX Runtime reads the variable that this sets.
// oxlint-disable-next-line import/no-unassigned-import
import './no-telemetry.ts';
import { itemAt, mapNonEmpty, valueOfKey } from '@darkroom/core';
import type { Device, DeviceRefusal, NodeCounts, NonEmpty } from '@darkroom/core';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { hasExactProducts } from './exact-products.ts';
import { floatsOfHalves } from './half-precision.ts';
import { createNodeCounter, type NodeCounter } from './node-counter.ts';
import { toRuntimeError } from './runtime-error.ts';
import { SessionTensors } from './session-tensors.ts';
import { type FloatTensor, notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

// Make ONNX Runtime store halves in Uint16Arrays even if Float16Array exists (Node 24): onnxruntime-node 1.30 rejects
// inputs in one (https://github.com/microsoft/onnxruntime/pull/32323). It checks when it creates its first tensor.
const scope = globalThis as { Float16Array?: unknown };
const { Float16Array } = scope;
if (Float16Array !== undefined) {
  delete scope.Float16Array;
  // oxlint-disable-next-line no-new
  new Tensor(new Float32Array(1), [1]);
  Object.defineProperty(scope, 'Float16Array', { value: Float16Array, configurable: true, writable: true });
}

/** onnxruntime-node's error for an output that is not a tensor, thrown after the graph has run. */
const nonTensorMessage = 'Non tensor type is temporarily not supported.';

export interface LoadOnnxSessionOptions {
  /** Path of the `.onnx` file, with external data next to it, or the file's bytes. */
  file: string | Uint8Array;
  /** In order of preference; default `cpu`. */
  devices?: readonly Device[];
  /** Threads of one run; default: ONNX Runtime's choice (the number of cores). */
  threads?: number;
  /** Profile calls until `countNodes`. */
  countsNodes?: boolean;
}

/**
 * Loads a graph on the first device that accepts it. Tries devices one at a time: given a list, ONNX Runtime reports
 * neither its choice nor the reasons against the others.
 *
 * @throws DarkroomError `out_of_memory` or `engine_failed`; the cause has ONNX Runtime's message.
 */
export async function loadOnnxSession(options: LoadOnnxSessionOptions): Promise<LoadedSession> {
  const { devices = ['cpu'] } = options;
  const refusals: DeviceRefusal[] = [];
  for (const device of devices) {
    try {
      return await openSession({ ...options, device, refusals: [...refusals] });
    } catch (error) {
      if (devices.length === 1) throw loadError(devices, error);
      refusals.push({ device, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  throw loadError(devices, new Error(refusals.map(({ device, reason }) => `${device}: ${reason}`).join('; ')));
}

function loadError(devices: readonly Device[], cause: unknown): unknown {
  return toRuntimeError(cause, 'runtime.load', `a model file could not be loaded on ${devices.join(', ')}`);
}

export type LoadedSession = Awaited<ReturnType<typeof openSession>>;

/** The methods that most callers need. */
export type OnnxSession = Omit<LoadedSession, 'runInto' | 'runUntyped'>;

type OpenSessionOptions = LoadOnnxSessionOptions & { device: Device; refusals: readonly DeviceRefusal[] };

async function openSession(options: OpenSessionOptions) {
  const { device, refusals, countsNodes = false } = options;
  // ONNX Runtime runs nodes that a device does not support on the CPU; only its profile shows which.
  const counter = countsNodes && device !== 'cpu' ? createNodeCounter() : undefined;
  const session = await createSession(options, counter);
  const inputs = session.inputMetadata.map(toTensorSpec);
  const outputs = session.outputMetadata.map(toTensorSpec);
  const tensors = new SessionTensors(inputs, outputs);

  /**
   * Runs the graph and returns the named outputs as float32, in that order. An input value passed again as the same
   * object must have the same array.
   *
   * @param into reusable buffers for outputs of known dimensions: new arrays of many megabytes pile up until garbage
   * collection. onnxruntime-node 1.30 copies outputs in order and stops at the first non-tensor: if that is the graph's
   * first output and all others have a buffer, nothing is copied.
   * @throws DarkroomError `out_of_memory` or `engine_failed`.
   */
  async function runForAll(
    feeds: Readonly<Record<string, TensorValue>>,
    names: NonEmpty<string>,
    into: ReadonlyMap<string, FloatTensor> = new Map(),
  ): Promise<NonEmpty<FloatTensor>> {
    const { fetches, skipsCopies } = tensors.fetchesOf(names, into);
    try {
      const results = await session.run(tensors.feedsOf(feeds), fetches);
      return mapNonEmpty(names, (name) => toFloatTensor(results[name]));
    } catch (error) {
      if (skipsCopies && error instanceof Error && error.message === nonTensorMessage)
        return mapNonEmpty(names, (name) => valueOfKey(into, name));
      throw toRuntimeError(error, 'runtime.run', 'the model could not be run');
    }
  }

  return {
    device,
    ...untypedRuns(session, tensors),
    /** Devices that were tried before, with the reasons why they failed. */
    refusals,
    inputs,
    outputs,
    runForAll,
    /** Runs the graph and returns one output, by default its first. */
    async run(feeds: Readonly<Record<string, TensorValue>>, output = itemAt(outputs, 0).name): Promise<FloatTensor> {
      const [result] = await runForAll(feeds, [output]);
      return result;
    },
    /**
     * Returns the number of nodes that ran on each device so far, and stops counting. Undefined if nothing was counted,
     * and on the CPU, where all nodes run.
     */
    async countNodes(): Promise<NodeCounts | undefined> {
      if (counter !== undefined) session.endProfiling();
      return counter?.read();
    },
    async dispose(): Promise<void> {
      await session.release();
      counter?.drop();
    },
  };
}

/** Methods that use outputs without conversion to float32. */
function untypedRuns(session: InferenceSession, tensors: SessionTensors) {
  return {
    /**
     * Runs the graph and writes outputs of any type to their buffers; without a copy if the graph's first output is not
     * a tensor.
     *
     * @throws DarkroomError `out_of_memory` or `engine_failed`.
     */
    async runInto(feeds: Readonly<Record<string, TensorValue>>, into: ReadonlyMap<string, TensorValue>): Promise<void> {
      const { fetches, skipsCopies } = tensors.placed(into);
      try {
        await session.run(tensors.feedsOf(feeds), fetches);
      } catch (error) {
        if (skipsCopies && error instanceof Error && error.message === nonTensorMessage) return;
        throw toRuntimeError(error, 'runtime.run', 'the model could not be run');
      }
    },

    /** Runs the graph and returns outputs in their own types. */
    async runUntyped(
      feeds: Readonly<Record<string, TensorValue>>,
      names: readonly string[],
    ): Promise<ReadonlyMap<string, TensorValue>> {
      const results = await session.run(tensors.feedsOf(feeds), [...names]);
      return new Map(names.map((name) => [name, results[name] as unknown as TensorValue]));
    },
  };
}

async function cpuSettings() {
  // On the CPU, convert weights behind a DequantizeLinear to float at load, not per call: with weights converted per
  // call, products round differently for one row than for two. (On CUDA they stay INT8.) Use exact integer products on
  // CPUs without VNNI, whose fast ones overflow.
  return { disable_quant_qdq: '1', x64quantprecision: (await hasExactProducts()) ? '0' : '1' };
}

async function createSession(
  { file, device, threads }: OpenSessionOptions,
  counter: NodeCounter | undefined,
): Promise<InferenceSession> {
  const options: InferenceSession.SessionOptions = {
    executionProviders: [providerOf(device)],
    ...(threads === undefined ? {} : { intraOpNumThreads: threads }),
    interOpNumThreads: 1,
    executionMode: 'sequential',
    // Spinning threads take cores from Redis, the API and the worker: on a machine with two cores, a UNet call of 4
    // rows took 91 ms (median of 100) with spinning and 51 ms without.
    extra: { session: { intra_op: { allow_spinning: '0' }, ...(device === 'cpu' && (await cpuSettings())) } },
    logSeverityLevel: 3,
    ...counter?.sessionOptions,
  };
  try {
    // Each overload takes one of the two types.
    const session = await (typeof file === 'string'
      ? InferenceSession.create(file, options)
      : InferenceSession.create(file, options));
    counter?.open();
    return session;
  } catch (error) {
    counter?.drop();
    throw error;
  }
}

function providerOf(device: Device): InferenceSession.ExecutionProviderConfig {
  const [name = '', deviceId = '0'] = device.split(':');
  return name === 'cuda' ? { name, deviceId: Number(deviceId) } : name;
}

function toTensorSpec(metadata: InferenceSession.ValueMetadata): TensorSpec {
  if (!metadata.isTensor) return { name: metadata.name, type: notTensor, shape: [] };
  return { name: metadata.name, type: metadata.type, shape: metadata.shape };
}

function toFloatTensor(tensor: Tensor | undefined): FloatTensor {
  if (tensor === undefined) throw new TypeError('a requested output is missing');
  const { data, dims, type } = tensor;
  if (data instanceof Float32Array) return { data, dims };
  if (type !== 'float16' || !ArrayBuffer.isView(data)) {
    throw new TypeError(`an output of type ${type} was requested as float32`);
  }
  return { data: floatsOfHalves(new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2)), dims };
}
