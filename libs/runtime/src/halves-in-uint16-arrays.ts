/**
 * Has ONNX Runtime keep halves in Uint16Arrays, wherever there is a Float16Array (Node 24) too: onnxruntime-node 1.30 takes no
 * input that lies in one (https://github.com/microsoft/onnxruntime/pull/32323). It looks for it when it makes its first tensor.
 */
import { Tensor } from 'onnxruntime-node';

const scope = globalThis as { Float16Array?: unknown };
const { Float16Array } = scope;
if (Float16Array !== undefined) {
  delete scope.Float16Array;
  // oxlint-disable-next-line no-new
  new Tensor(new Float32Array(1), [1]);
  Object.defineProperty(scope, 'Float16Array', { value: Float16Array, configurable: true, writable: true });
}
