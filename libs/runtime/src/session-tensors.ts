import { Tensor } from 'onnxruntime-node';
import { halvesOf } from './half-precision.ts';
import { notTensor, type TensorSpec, type TensorValue } from './tensor-values.ts';

/** Which outputs a call gives, and how. */
export interface Fetches {
  /** Of each output where it is to be written; null for a new array. */
  readonly fetches: Readonly<Record<string, Tensor | null>>;
  /** Whether there is one among them that ends the copying of the others. */
  readonly stopsCopies: boolean;
}

/** Makes ONNX Runtime's tensors of values; of a value that comes again the one that there is. */
export class SessionTensors {
  readonly #inputTypes: ReadonlyMap<string, string>;
  readonly #outputTypes: ReadonlyMap<string, string>;
  /** The first output, if it is no tensor. */
  readonly #stopper: string | undefined;
  readonly #known = new WeakMap<TensorValue, Tensor>();

  constructor(inputs: readonly TensorSpec[], outputs: readonly TensorSpec[]) {
    this.#inputTypes = new Map(inputs.map(({ name, type }) => [name, type]));
    this.#outputTypes = new Map(outputs.map(({ name, type }) => [name, type]));
    this.#stopper = outputs[0]?.type === notTensor ? outputs[0].name : undefined;
  }

  feedsOf(values: Readonly<Record<string, TensorValue>>): Record<string, Tensor> {
    const feeds: Record<string, Tensor> = {};
    for (const [name, value] of Object.entries(values)) feeds[name] = this.#tensorOf(name, value);
    return feeds;
  }

  /**
   * @param names outputs that are wanted as new arrays, where no place of their type is given.
   * @param into where outputs are to be written.
   * @throws TypeError if one that is wanted only there is of another type: it would be lost.
   */
  fetchesOf(names: readonly string[], into: ReadonlyMap<string, TensorValue> = new Map()): Fetches {
    const fetches: Record<string, Tensor | null> = Object.fromEntries(names.map((name) => [name, null]));
    for (const [name, place] of into) {
      const type = this.#outputTypes.get(name);
      if (type === typeOf(place)) fetches[name] = this.#tensorOf(name, place);
      else if (fetches[name] === undefined) throw new TypeError(`${name} is ${type}, and its place ${typeOf(place)}`);
    }
    const stopper = names.every((name) => fetches[name] !== null) ? this.#stopper : undefined;
    if (stopper !== undefined) fetches[stopper] = null;
    return { fetches, stopsCopies: stopper !== undefined };
  }

  #tensorOf(name: string, value: TensorValue): Tensor {
    const { data, dims } = value;
    if (this.#inputTypes.get(name) === 'float16' && data instanceof Float32Array)
      return new Tensor('float16', halvesOf(data), dims);
    const tensor = this.#known.get(value) ?? new Tensor(typeOf(value), data, dims);
    this.#known.set(value, tensor);
    return tensor;
  }
}

function typeOf({ data }: TensorValue): 'float32' | 'float16' | 'int64' | 'int32' {
  if (data instanceof Float32Array) return 'float32';
  if (data instanceof Uint16Array) return 'float16';
  return data instanceof BigInt64Array ? 'int64' : 'int32';
}
