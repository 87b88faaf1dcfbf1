/** Classes of failed attempts that are not the request's fault. Clients see only the class of the last one. */
export const failureCodes = ['engine_error', 'out_of_memory', 'timeout', 'worker_lost'] as const;
export type FailureCode = (typeof failureCodes)[number];

/** Why an attempt failed, for operators: the message may hold paths and text of custom modules. */
export interface Failure {
  code: FailureCode;
  message: string;
  /** Stack of the error, as logged. */
  details?: string;
}

/** A failure as stored with its request. */
export interface LastFailure extends Failure {
  /** Id of the worker on which it failed. */
  worker: string;
}

const outOfMemory =
  /out of memory|out-of-memory|\bOOM\b|ENOMEM|bad_alloc|OutOfMemory|memory allocation (?:failed|of)|failed to allocate|heap limit/i;

/**
 * Classifies an error by its message, as drivers and modules have no error codes. `code`: the class if the message has
 * no match. `details`: by default the stack of the error.
 */
export function failureOf(
  error: unknown,
  code: FailureCode = 'engine_error',
  details = error instanceof Error ? error.stack : undefined,
): Failure {
  const message = error instanceof Error ? error.message : String(error);
  return {
    code: outOfMemory.test(message) ? 'out_of_memory' : code,
    message,
    ...(details && { details }),
  };
}
