import { Tensor } from 'onnxruntime-node';
import { halvesOf } from './half-precision.ts';
import { type FloatTensor, notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

/** The outputs that a call returns. */
export interface Fetches {
  /** The buffer of each output; null for a new array. */
  readonly fetches: Readonly<Record<string, Tensor | null>>;
  /** True if one of them makes onnxruntime-node skip the copies of the others. */
  readonly skipsCopies: boolean;
}

/** Converts values to ONNX Runtime's tensors, reusing the tensor of a value that was seen before. */
export class SessionTensors {
  readonly #types: ReadonlyMap<string, string>;
  readonly #floats: ReadonlySet<string>;
  /** Name of the first output, if it is not a tensor. */
  readonly #stopper: string | undefined;
  readonly #known = new WeakMap<TensorValue, Tensor>();

  constructor(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]) {
    this.#types = new Map([...inputs, ...outputs].map(({ name, type }) => [name, type]));
    this.#floats = new Set(outputs.flatMap(({ name, type }) => (type === 'float32' ? name : [])));
    this.#stopper = outputs[0]?.type === notTensor ? outputs[0].name : undefined;
  }

  feedsOf(values: Readonly<Record<string, TensorValue>>): Record<string, Tensor> {
    const feeds: Record<string, Tensor> = {};
    for (const [name, value] of Object.entries(values)) feeds[name] = this.#tensorOf(name, value);
    return feeds;
  }

  /** Fetches outputs into buffers only. */
  placed(into: ReadonlyMap<string, TensorValue>): Fetches {
    const fetches: Record<string, Tensor | null> = {};
    for (const [name, value] of into) fetches[name] = this.#tensorOf(name, value);
    if (this.#stopper !== undefined) fetches[this.#stopper] = null;
    return { fetches, skipsCopies: this.#stopper !== undefined };
  }

  /** @param into buffers of some of the outputs. */
  fetchesOf(names: readonly string[], into: ReadonlyMap<string, FloatTensor>): Fetches {
    const fetches: Record<string, Tensor | null> = {};
    for (const name of names) {
      const target = this.#floats.has(name) ? into.get(name) : undefined;
      fetches[name] = target === undefined ? null : this.#tensorOf(name, target);
    }
    const stopper = names.every((name) => fetches[name] !== null) ? this.#stopper : undefined;
    if (stopper !== undefined) fetches[stopper] = null;
    return { fetches, skipsCopies: stopper !== undefined };
  }

  #createTensor(name: string, { data, dims }: TensorValue): Tensor {
    if (data instanceof Uint16Array) return new Tensor('float16', data, dims);
    if (data instanceof Uint8Array && this.#types.get(name) === 'bool') return new Tensor('bool', data, dims);
    return new Tensor(data, dims);
  }

  #tensorOf(name: string, value: TensorValue): Tensor {
    const { data, dims } = value;
    if (this.#types.get(name) === 'float16' && data instanceof Float32Array)
      return new Tensor('float16', halvesOf(data), dims);
    const tensor = this.#known.get(value) ?? this.#createTensor(name, value);
    this.#known.set(value, tensor);
    return tensor;
  }
}
