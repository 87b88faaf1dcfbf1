import { DarkroomError } from '@darkroom/core';

// Messages of ONNX Runtime 1.30 for a failed allocation on the CPU arena, in CUDA, cuBLAS or cuDNN.
const outOfMemory =
  /out of memory|bad_alloc|failed to allocate|allocation fail|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED/iu;

/**
 * Converts an error of ONNX Runtime: `out_of_memory` if its text says so, else `engine_failed`. The original text names
 * files and tensors, so it becomes the cause, not the message.
 *
 * @param subject the failed operation, safe to show, such as `the model could not take a step`.
 */
export function toRuntimeError(cause: unknown, op: string, subject: string): DarkroomError {
  if (DarkroomError.isInstance(cause)) return cause;
  const text = cause instanceof Error ? cause.message : String(cause);
  if (outOfMemory.test(text)) {
    return new DarkroomError('out_of_memory', op, `${subject}: out of memory`, cause);
  }
  return new DarkroomError('engine_failed', op, subject, cause);
}
