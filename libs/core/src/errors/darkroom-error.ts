/** Error class: the API maps it to a status, logs are grouped by it. */
export type ErrorCode =
  | 'invalid_request'
  /** The input or the output is blocked by moderation; OpenAI's name. */
  | 'content_policy_violation'
  | 'not_found'
  | 'gone'
  | 'conflict'
  | 'overloaded'
  | 'unavailable'
  | 'model_unsupported'
  | 'worker_lost'
  | 'engine_failed'
  | 'out_of_memory'
  | 'internal';

const marker = Symbol.for('darkroom.error');

/**
 * Base class of all deliberate errors. Expected outcomes (a lost lease, an empty queue) are return values instead.
 * `op`: the failed operation, such as `store.admit-request`; logged, never shown. `message` is safe to show to clients:
 * no path, no prompt, no stack.
 */
export class DarkroomError extends Error {
  readonly [marker] = true;
  readonly code: ErrorCode;
  readonly op: string;

  constructor(code: ErrorCode, op: string, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DarkroomError';
    this.code = code;
    this.op = op;
  }

  /** Works across two copies of this package, unlike `instanceof`. */
  static isInstance(value: unknown): value is DarkroomError {
    return typeof value === 'object' && value !== null && marker in value;
  }
}
