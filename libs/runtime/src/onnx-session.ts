/**
 * One ONNX graph, loaded. `run` blocks the event loop for as long as the graph takes (onnxruntime-node 1.30 calls it
 * synchronously from a setImmediate), so it belongs in a process that has nothing else to answer for.
 */
// First, because the import of ONNX Runtime already reads what it sets.
// oxlint-disable-next-line import/no-unassigned-import
import './no-telemetry.ts';
import type { Device, DeviceRefusal, NodeCounts } from '@darkroom/core';
import { InferenceSession, Tensor } from 'onnxruntime-node';
import { hasExactProducts } from './exact-products.ts';
import { floatsOfHalves } from './half-precision.ts';
import { createNodeCounter, type NodeCounter } from './node-counter.ts';
import { toRuntimeError } from './runtime-error.ts';
import { SessionTensors } from './session-tensors.ts';
import { type FloatTensor, notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

// ONNX Runtime is to keep halves in Uint16Arrays, wherever there is a Float16Array (Node 24) too: onnxruntime-node 1.30
// takes no input that lies in one (https://github.com/microsoft/onnxruntime/pull/32323). It looks for it when it makes
// its first tensor.
const scope = globalThis as { Float16Array?: unknown };
const { Float16Array } = scope;
if (Float16Array !== undefined) {
  delete scope.Float16Array;
  // oxlint-disable-next-line no-new
  new Tensor(new Float32Array(1), [1]);
  Object.defineProperty(scope, 'Float16Array', { value: Float16Array, configurable: true, writable: true });
}

/** What onnxruntime-node says of an output that is none, after the graph has run. */
const stoppedMessage = 'Non tensor type is temporarily not supported.';

export interface LoadOnnxSessionOptions {
  /** Path of the `.onnx` file, beside which external data is found, or the file's bytes. */
  file: string | Uint8Array;
  /** In the order of preference; `cpu` if absent. */
  devices?: readonly Device[];
  /** Only the first of them will do. */
  isStrict?: boolean;
  /** Threads of one graph run; ONNX Runtime's own choice (the number of cores) if absent. */
  threads?: number;
  /** Calls are profiled until `countNodes`. */
  countsNodes?: boolean;
}

/**
 * Loads a graph on the first device that takes it: with one at a time, because ONNX Runtime, given a list, neither says
 * which of them it took nor why it left one out.
 *
 * @throws DarkroomError `out_of_memory` or `engine_failed`; the cause has ONNX Runtime's own words.
 */
export async function loadOnnxSession(options: LoadOnnxSessionOptions): Promise<LoadedSession> {
  const { devices = ['cpu'], isStrict = false } = options;
  const wanted = isStrict ? devices.slice(0, 1) : devices;
  const refusals: DeviceRefusal[] = [];
  for (const device of wanted) {
    try {
      return await openSession({ ...options, device, refusals: [...refusals] });
    } catch (error) {
      if (wanted.length === 1) throw loadError(wanted, error);
      refusals.push({ device, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  throw loadError(wanted, new Error(refusals.map(({ device, reason }) => `${device}: ${reason}`).join('; ')));
}

function loadError(devices: readonly Device[], cause: unknown): unknown {
  return toRuntimeError(cause, 'runtime.load', `a model file could not be loaded on ${devices.join(', ')}`);
}

export type LoadedSession = Awaited<ReturnType<typeof openSession>>;

/** What most call of it. */
export type OnnxSession = Omit<LoadedSession, 'runInto' | 'runAsItIs'>;

type OpenSessionOptions = LoadOnnxSessionOptions & { device: Device; refusals: readonly DeviceRefusal[] };

async function openSession(options: OpenSessionOptions) {
  const { device, refusals, countsNodes = false } = options;
  // ONNX Runtime always has the CPU take the nodes that a device has no code for: which ones, only its profile says.
  const counter = countsNodes && device !== 'cpu' ? createNodeCounter() : undefined;
  const session = await createSession(options, counter);
  const inputs = session.inputMetadata.map(toTensorSpec);
  const outputs = session.outputMetadata.map(toTensorSpec);
  const tensors = new SessionTensors(inputs, outputs);

  /**
   * Runs the graph and gives some of its outputs as float32, in the order asked for. A value that comes again as the same
   * object has to have the same array.
   *
   * @param into where to write some of them, if their dimensions are known: new arrays of many megabytes pile up until
   * somebody collects them. onnxruntime-node 1.30 gives a copy of these, too. It does so for one output after the other, and
   * stops at the first that is no tensor: if that is the graph's first and all others have a place, nothing is copied.
   * @throws DarkroomError `out_of_memory` or `engine_failed`.
   */
  async function runForAll(
    feeds: Readonly<Record<string, TensorValue>>,
    names: readonly string[],
    into?: ReadonlyMap<string, FloatTensor>,
  ): Promise<FloatTensor[]> {
    const { fetches, stopsCopies } = tensors.fetchesOf(names, into);
    try {
      const results = await session.run(tensors.feedsOf(feeds), fetches);
      return names.map((name) => toFloatTensor(results[name]!));
    } catch (error) {
      if (stopsCopies && error instanceof Error && error.message === stoppedMessage)
        return names.map((name) => into!.get(name)!);
      throw toRuntimeError(error, 'runtime.run', 'the model could not be run');
    }
  }

  return {
    device,
    ...placedRuns(session, tensors),
    /** Devices before that one in the order of preference. */
    refusals,
    inputs,
    outputs,
    runForAll,
    /** The same with one output. */
    async run(feeds: Readonly<Record<string, TensorValue>>, output: string): Promise<FloatTensor> {
      const [result] = await runForAll(feeds, [output]);
      return result!;
    },
    /**
     * How many of the graph's nodes ran on the device and how many on the CPU, in the calls so far; no later ones are
     * counted. undefined where nothing was to be counted or could be, and on the CPU, where all of them run.
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

/** Ways to run a graph that take its outputs as they are. */
function placedRuns(session: InferenceSession, tensors: SessionTensors) {
  return {
    /**
     * Runs the graph and has some of its outputs written to their places, of whatever type; where the graph's first output is no
     * tensor, without a copy.
     *
     * @throws DarkroomError `out_of_memory` or `engine_failed`.
     */
    async runInto(feeds: Readonly<Record<string, TensorValue>>, into: ReadonlyMap<string, TensorValue>): Promise<void> {
      const { fetches, stopsCopies } = tensors.placed(into);
      try {
        await session.run(tensors.feedsOf(feeds), fetches);
      } catch (error) {
        if (stopsCopies && error instanceof Error && error.message === stoppedMessage) return;
        throw toRuntimeError(error, 'runtime.run', 'the model could not be run');
      }
    },

    /** Runs the graph and gives some of its outputs in their own types. */
    async runAsItIs(
      feeds: Readonly<Record<string, TensorValue>>,
      names: readonly string[],
    ): Promise<ReadonlyMap<string, TensorValue>> {
      const results = await session.run(tensors.feedsOf(feeds), [...names]);
      return new Map(names.map((name) => [name, results[name] as unknown as TensorValue]));
    },
  };
}

async function cpuSettings() {
  // Weights behind a DequantizeLinear become float when a graph is loaded for the CPU, not at each call: products and
  // convolutions of weights that change have other roundings for one row than for two. On CUDA they stay INT8.
  // Products of integers are to be exact on CPUs without VNNI, too, where the quicker ones overflow.
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
    // Threads that spin while they wait take the cores from Redis, the API and the worker beside them: with both cores of
    // a machine shared, a UNet call of 4 rows took 91 ms (median of 100) with spinning and 51 ms without.
    extra: { session: { intra_op: { allow_spinning: '0' }, ...(device === 'cpu' && (await cpuSettings())) } },
    logSeverityLevel: 3,
    ...counter?.sessionOptions,
  };
  try {
    // Two signatures of one function, of which each call takes one.
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
  const [name, deviceId = '0'] = device.split(':');
  return name === 'cuda' ? { name, deviceId: Number(deviceId) } : name!;
}

function toTensorSpec(metadata: InferenceSession.ValueMetadata): TensorSpec {
  if (!metadata.isTensor) return { name: metadata.name, type: notTensor, shape: [] };
  return { name: metadata.name, type: metadata.type, shape: metadata.shape };
}

function toFloatTensor({ data, dims, type }: Tensor): FloatTensor {
  if (data instanceof Float32Array) return { data, dims };
  if (type !== 'float16' || !ArrayBuffer.isView(data)) {
    throw new TypeError(`an output of type ${type} was asked for as float32`);
  }
  return { data: floatsOfHalves(new Uint16Array(data.buffer, data.byteOffset, data.byteLength / 2)), dims };
}
