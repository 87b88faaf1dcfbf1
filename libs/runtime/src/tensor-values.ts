/** An input or output as the graph declares it. */
export interface TensorSpec {
  readonly name: string;
  /** ONNX's name of the element type, such as `float32`, `float16` or `int64`. */
  readonly type: string;
  /** Dimensions; a name for a variable one. */
  readonly shape: readonly (number | string)[];
}

/**
 * A tensor as callers pass it: float32 for any floating-point input, integers for integer ones. Callers that only pass
 * outputs back in may keep halves unconverted.
 */
export interface TensorValue {
  /**
   * Row-major; a Uint16Array has the bits of float16, a Uint8Array may be bool. ONNX Runtime copies it before `run`
   * resolves, so it can be reused then.
   */
  readonly data: Float32Array | Uint16Array | BigInt64Array | Int32Array | Uint8Array | Int8Array;
  readonly dims: readonly number[];
}

export interface FloatTensor extends TensorValue {
  readonly data: Float32Array;
}

/** Returns the number of values of a tensor. */
export function lengthOf(dims: readonly number[]): number {
  return dims.reduce((product, side) => product * side, 1);
}

/** Type of an input or output that is not a tensor, such as a sequence. */
export const notTensor = 'not a tensor';
