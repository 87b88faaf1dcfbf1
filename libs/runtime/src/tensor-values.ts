/** An input or output as the graph declares it. */
export interface TensorSpec {
  readonly name: string;
  /** ONNX's name of the element type, such as `float32`, `float16` or `int64`. */
  readonly type: string;
  /** Dimensions; a name stands for one that varies. */
  readonly shape: readonly (number | string)[];
}

/**
 * Values as the graph's caller has them: float32 for any floating input, numbers for integer ones. Who only keeps what a graph
 * gives and takes back may have halves as they are.
 */
export interface TensorValue {
  /** Row-major; a Uint16Array has the bits of float16. Copied by ONNX Runtime before `run` resolves, so it may be used again for the next call. */
  readonly data: Float32Array | Uint16Array | BigInt64Array | Int32Array | Uint8Array | Int8Array;
  readonly dims: readonly number[];
}

export interface FloatTensor extends TensorValue {
  readonly data: Float32Array;
}

/** The type of an input or output that is something else, such as a sequence. */
export const notTensor = 'not a tensor';
